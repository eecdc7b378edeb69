"""The mean over time at other frame rates."""
