"""Engines that run workers: processes of this machine, or actors of Ray. They do not know what a worker does."""
