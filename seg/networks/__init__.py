"""Segmentation networks: U-Net, SegNet, and all of segmentation-models-pytorch."""
