"""The training loop, its distributed processes, and the folder of a run."""
