"""Segmentation networks: our U-Net, and those of segmentation-models-pytorch."""
