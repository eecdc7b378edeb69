"""Deployment: ONNX export and the executors that run the exported file."""
