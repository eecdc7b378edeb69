"""Textures mixed into training pictures, so that a network relies less on the exact look of a surface.

This is PixMix (arXiv 2112.05135) with generated textures in place of fractals from the web: noise with a falling
spectrum, half of it bent into bands. The variants of the picture itself leave every pixel in its place, because the
label stays. As in AugMix, changes of colour, contrast, brightness and sharpness are excluded: robustness is measured by
them.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as V

ROUNDS = 4
"""Largest number of textures or variants mixed in, as published."""
STRENGTH = 3.0
"""Parameter of the Beta distribution of the shares, as published."""
VARIANTS: tuple[Callable[[Tensor], Tensor], ...] = (
    V.autocontrast,
    V.equalize,
    lambda picture: V.posterize(picture, int(torch.randint(4, 7, ()))),
    lambda picture: V.solarize(picture, float(torch.randint(128, 256, ()))),
)


def mix_textures(picture: Tensor) -> Tensor:
    """Mixes a picture (3, h, w) uint8 with 0 to ROUNDS textures or variants of itself, drawn by torch's generator."""
    mixed = _to_unit(_variant(picture) if draws(0.5) else picture)
    for _ in range(int(torch.randint(ROUNDS + 1, ()))):
        other = _to_unit(_variant(picture)) if draws(0.5) else texture(*picture.shape[-2:])
        mixed = (_add if draws(0.5) else _multiply)(mixed, other).clamp(0.0, 1.0)
    return mixed.mul(255.0).round().to(torch.uint8)


def texture(height: int, width: int) -> Tensor:
    """Returns a texture (3, h, w) in 0..1: noise in random colours whose amplitude falls as 1 / frequency ** (1 to 2).

    Half of the textures are bent into bands.
    """
    slope = float(torch.empty(()).uniform_(1.0, 2.0))
    rows, columns = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)
    frequency = (rows.square() + columns.square()).sqrt()
    frequency[0, 0] = math.inf  # no mean
    spectrum = torch.fft.rfft2(torch.randn(3, height, width)) / frequency**slope
    noise = torch.fft.irfft2(spectrum, s=(height, width))
    noise = torch.einsum("ij,jhw->ihw", torch.randn(3, 3), noise / noise.std())  # correlates the colours
    if draws(0.5):
        noise = torch.sin(noise * float(torch.empty(()).uniform_(0.5, 2.0)))
    low, high = noise.amin((1, 2), keepdim=True), noise.amax((1, 2), keepdim=True)
    return (noise - low) / (high - low).clamp(min=1e-6)


def draws(probability: float) -> bool:
    """Returns True with this probability, drawn by torch's generator."""
    return float(torch.rand(())) < probability


def _variant(picture: Tensor) -> Tensor:
    return VARIANTS[int(torch.randint(len(VARIANTS), ()))](picture)


def _to_unit(picture: Tensor) -> Tensor:
    return picture.float() / 255.0


def _add(one: Tensor, other: Tensor) -> Tensor:
    """Adds two pictures as deviations from mid-grey, so that the sum is no darker than the pictures."""
    much, little = _shares()
    return (much * (2.0 * one - 1.0) + little * (2.0 * other - 1.0) + 1.0) / 2.0


def _multiply(one: Tensor, other: Tensor) -> Tensor:
    much, little = _shares()
    return (2.0 * one) ** much * (2.0 * other).clamp(min=1e-3) ** little / 2.0


def _shares() -> tuple[float, float]:
    """Draws the shares of two pictures: half of the time (near 1, near 0), else (a little above 1, below 0)."""
    near_one = torch.distributions.Beta(STRENGTH, 1.0)
    near_zero = torch.distributions.Beta(1.0, STRENGTH)
    if draws(0.5):
        return float(near_one.sample()), float(near_zero.sample())
    return 1.0 + float(near_zero.sample()), -float(near_zero.sample())
