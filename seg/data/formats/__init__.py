"""Readers of the label formats of annotation tools and published data sets."""
