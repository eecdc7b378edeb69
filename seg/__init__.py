"""Semantic segmentation: networks, data sets, the streaming computation, training and evaluation."""
