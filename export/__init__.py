"""Deployment: ONNX export and the backends that run the exported file."""
