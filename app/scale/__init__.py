"""Many videos (`batch`) in several processes, on this machine or a Ray cluster."""
