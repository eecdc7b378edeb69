"""Runs networks on frames: chooses library and number format, keeps converted graphs, computes the maps."""
