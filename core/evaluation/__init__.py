"""Metrics, temperature scaling, conformal prediction."""
