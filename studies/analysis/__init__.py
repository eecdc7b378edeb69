"""The papers' studies: fourier, variance, hessian, landscape, lesion, similarity, reliability."""
