"""Corruptions, perturbations and attacks, and the figures that are reported of them."""
