"""Parts that segmentation, classification and export share: types, smoothing, metrics, checkpoints, training loop."""
