"""Readers of what label tools and published data sets write."""
