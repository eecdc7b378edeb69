"""The command export: a checkpoint becomes one proven ONNX file."""
