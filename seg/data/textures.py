"""Textures mixed into training pictures: what a network cannot lean on any more is the exact look of a surface.

PixMix (arXiv 2112.05135) with textures that are generated here, noise with a falling spectrum, some of it bent into
bands, in place of fractals from the web. The picture's own variants leave every pixel in its place, as the label stays.
What AugMix leaves out is left out here: changes of colour, contrast, brightness and sharpness, which robustness is
measured by.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as V

ROUNDS = 4
"""Textures or variants mixed in at most; published: 4."""
STRENGTH = 3.0
"""Of the Beta distribution of the shares; published: 3."""
VARIANTS: tuple[Callable[[Tensor], Tensor], ...] = (
    V.autocontrast,
    V.equalize,
    lambda picture: V.posterize(picture, int(torch.randint(4, 7, ()))),
    lambda picture: V.solarize(picture, float(torch.randint(128, 256, ()))),
)


def mix_textures(picture: Tensor) -> Tensor:
    """(3, h, w) uint8 -> the same, mixed with 0 to ROUNDS textures or variants of itself; drawn from torch's
    generator."""
    mixed = _to_unit(_variant(picture) if draws(0.5) else picture)
    for _ in range(int(torch.randint(ROUNDS + 1, ()))):
        other = _to_unit(_variant(picture)) if draws(0.5) else texture(*picture.shape[-2:])
        mixed = (_add if draws(0.5) else _multiply)(mixed, other).clamp(0.0, 1.0)
    return mixed.mul(255.0).round().to(torch.uint8)


def texture(height: int, width: int) -> Tensor:
    """(3, h, w) in 0..1: noise whose amplitude falls as 1 / frequency ** (1 to 2), in random colours; half of it in
    bands."""
    slope = float(torch.empty(()).uniform_(1.0, 2.0))
    rows, columns = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)
    frequency = (rows.square() + columns.square()).sqrt()
    frequency[0, 0] = math.inf  # no mean
    spectrum = torch.fft.rfft2(torch.randn(3, height, width)) / frequency**slope
    noise = torch.fft.irfft2(spectrum, s=(height, width))
    noise = torch.einsum("ij,jhw->ihw", torch.randn(3, 3), noise / noise.std())  # the colours hang together
    if draws(0.5):
        noise = torch.sin(noise * float(torch.empty(()).uniform_(0.5, 2.0)))
    low, high = noise.amin((1, 2), keepdim=True), noise.amax((1, 2), keepdim=True)
    return (noise - low) / (high - low).clamp(min=1e-6)


def draws(probability: float) -> bool:
    """True with this probability, by torch's generator."""
    return float(torch.rand(())) < probability


def _variant(picture: Tensor) -> Tensor:
    return VARIANTS[int(torch.randint(len(VARIANTS), ()))](picture)


def _to_unit(picture: Tensor) -> Tensor:
    return picture.float() / 255.0


def _add(one: Tensor, other: Tensor) -> Tensor:
    """Both about their middle, so that a share of the other darkens nothing by itself."""
    much, little = _shares()
    return (much * (2.0 * one - 1.0) + little * (2.0 * other - 1.0) + 1.0) / 2.0


def _multiply(one: Tensor, other: Tensor) -> Tensor:
    much, little = _shares()
    return (2.0 * one) ** much * (2.0 * other).clamp(min=1e-3) ** little / 2.0


def _shares() -> tuple[float, float]:
    """(near 1, near 0), or as often (a little above 1, a little below 0), which takes the other away."""
    near_one = torch.distributions.Beta(STRENGTH, 1.0)
    near_zero = torch.distributions.Beta(1.0, STRENGTH)
    if draws(0.5):
        return float(near_one.sample()), float(near_zero.sample())
    return 1.0 + float(near_zero.sample()), -float(near_zero.sample())
