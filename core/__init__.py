"""Parts that segmentation, classification and export share: central types, smoothing, metrics, checkpoints and the
training loop."""
