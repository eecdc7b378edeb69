"""Image classification on the same core as segmentation."""
