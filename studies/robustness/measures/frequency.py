"""Bands of spatial frequency: what of a picture, of noise or of an attack lies in a square ring of its spectrum.

The distance of a frequency from the centre of the spectrum is max(|f_y|, |f_x|), as in arXiv 2202.06709: rings are
square. Its unit is pi, the Nyquist frequency (1 = a period of two pixels). A mask depends on |f_y| and |f_x| alone, so
it is symmetric for every size, odd or even, and what it leaves is real. The published code cuts rings of [-b, b) and
drops an imaginary part.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from steadyseg.core.errors import InputError

PAPER_CENTRES = tuple(i / 10 for i in range(1, 10))
"""The paper's bands, each 0.1 pi wide."""


@dataclass(frozen=True)
class Band:
    """Frequencies at a distance in [centre - half_width, centre + half_width), in units of pi; one that reaches 1 has 1
    too."""

    centre: float
    half_width: float = 0.05


def band_mask(height: int, width: int, band: Band) -> Tensor:
    """(height, width) bool, in the order of `torch.fft.fft2`. InputError if the band has no frequency of this size."""
    rows, columns = (
        torch.fft.fftfreq(n).mul(n).round().abs().long() for n in (height, width)
    )  # 0, 1, ..., n // 2, ..., 1

    def inside(edge: float) -> Tensor:
        if edge >= 1.0 - 1e-9:
            return torch.ones(height, width, dtype=torch.bool)
        # In periods of the picture; rounded first, so that 0.3 + 0.05 and 0.4 - 0.05 are one edge.
        row_edge, column_edge = (math.ceil(round(edge * n / 2, 9)) for n in (height, width))
        return (rows < row_edge)[:, None] & (columns < column_edge)[None, :]

    mask = inside(band.centre + band.half_width) & ~inside(band.centre - band.half_width)
    if not bool(mask.any()):
        raise InputError(
            f"a picture of {width}x{height} has no frequency within {band.half_width:g} of {band.centre:g} pi: widen "
            f"the half-width to {math.ceil(1000 / max(height, width)) / 1000:g} or more"
        )
    return mask


def limit_to_band(pictures: Tensor, band: Band) -> Tensor:
    """Part of (..., C, H, W) real numbers within the band, of equal shape: any size, any number of channels."""
    height, width = pictures.shape[-2:]
    mask = band_mask(height, width, band)[:, : width // 2 + 1].to(pictures.device)  # the half that a real picture has
    wide = pictures.to(torch.promote_types(pictures.dtype, torch.float32))  # no transform of halves on a CPU
    return torch.fft.irfft2(torch.fft.rfft2(wide) * mask, s=(height, width)).to(pictures.dtype)


def band_noise(
    shape: tuple[int, ...], band: Band, rms: float, seed: int = 0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Gaussian noise (..., C, H, W) that has only the band's frequencies, from the seed alone.

    The root mean square of every picture is exactly `rms`, so that all bands have the same L2 norm, rms * sqrt(C H W).
    Adding it to pixels and clamping them spreads a part of it to other bands.
    """
    white = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    noise = limit_to_band(white, band)
    return (rms * noise / noise.square().mean((-3, -2, -1), keepdim=True).sqrt()).to(dtype)


def attack_in_band(images: Tensor, attacked: Tensor, band: Band) -> Tensor:
    """images + the band's part of (attacked - images), clamped to 0..1; both (B, C, H, W) pixels in 0..1.

    A part of a perturbation may exceed the max-norm of the whole: the budget holds in L2 only.
    """
    return (images + limit_to_band(attacked - images, band)).clamp(0.0, 1.0)
