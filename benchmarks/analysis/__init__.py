"""docs/analysis.md: every study of `steadyseg analyze` for a pair of classifiers and a pair of segmentation networks."""
