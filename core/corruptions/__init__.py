"""Corruptions of pictures: the benchmark's, those of another camera, textures, and the choice for tuning."""
