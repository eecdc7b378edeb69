"""Corruptions of pictures: the benchmark's, another camera's, textures, and the choice for tuning."""
