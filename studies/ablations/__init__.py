"""docs/studies/ablations: the papers' ablations of smoothing, heads and activations at the size of two cores."""
