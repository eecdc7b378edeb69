"""Segmentation networks: U-Net, SegNet, and those of segmentation-models-pytorch."""
