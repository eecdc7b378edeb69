"""The commands evaluate and calibrate, for segmentation networks and image classifiers."""
