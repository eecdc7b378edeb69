"""Many videos (`batch`) and many cameras (`cameras`) in several processes, on this machine or a Ray cluster."""
