"""What segmentation, classification and export share: central types, smoothing, metrics, checkpoints, the training
loop."""
