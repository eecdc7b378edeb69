"""`steadyseg analyze` fourier, variance, hessian, landscape, lesion, similarity, reliability: the papers' studies."""
