"""Frequency bands: nothing outside, nothing lost, nothing imaginary, for odd and even sizes."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.studies.robustness.measures.frequency import (
    PAPER_CENTRES,
    Band,
    attack_in_band,
    band_mask,
    band_noise,
    limit_to_band,
)

SIZES = [(32, 32), (31, 31), (32, 45), (33, 20), (7, 64), (1, 9), (2, 2)]


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def slow_mask(height: int, width: int, low: float, high: float) -> np.ndarray:
    """The mask of a band, frequency by frequency; the last band includes the Nyquist frequency."""
    mask = np.zeros((height, width), bool)
    for y in range(height):
        for x in range(width):
            distance = max(2 * min(y, height - y) / height, 2 * min(x, width - x) / width)
            mask[y, x] = low - 1e-9 <= distance and (distance < high - 1e-9 or high > 1 - 1e-9)
    return mask


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("centre", "half_width"), [(0.5, 0.1), (0.05, 0.1), (0.9, 0.1), (0.3, 0.2), (1.0, 0.3), (0.5, 1.0)]
)
def test_the_ring_is_square_and_symmetric(size: tuple[int, int], centre: float, half_width: float) -> None:
    expected = slow_mask(*size, centre - half_width, centre + half_width)
    if not expected.any():
        with pytest.raises(InputError, match="no frequency"):
            band_mask(*size, Band(centre, half_width))
        return
    mask = band_mask(*size, Band(centre, half_width)).numpy()
    assert (mask == expected).all()
    assert (mask == np.roll(mask[::-1, ::-1], (1, 1), (0, 1))).all()  # M(f) = M(-f)


@pytest.mark.parametrize("size", SIZES[:5])
def test_what_is_left_is_real_and_has_no_energy_outside(size: tuple[int, int]) -> None:
    x = drawn(2, 3, *size)
    band = Band(0.5, 0.15)
    kept, mask = limit_to_band(x, band), band_mask(*size, band)
    energy = torch.fft.fft2(kept).abs().square()
    assert energy[..., ~mask].sum() < 1e-24 * energy.sum()  # 1e-12 of the amplitude
    by_complex = torch.fft.ifft2(torch.fft.fft2(x) * mask)
    assert by_complex.imag.abs().max() < 1e-12 * by_complex.real.abs().max()
    torch.testing.assert_close(kept, by_complex.real, rtol=0, atol=1e-12)
    assert 0 < kept.square().sum() < x.square().sum()


def equal_bands(count: int) -> list[Band]:
    return [Band((i + 0.5) / count, 0.5 / count) for i in range(count)]


@pytest.mark.parametrize("size", [*SIZES[:5], (96, 128), (9, 10)])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_disjoint_bands_add_up_to_the_picture(size: tuple[int, int], count: int) -> None:
    x = drawn(2, 4, *size)
    bands = equal_bands(count)
    assert sum(band_mask(*size, band).int() for band in bands).eq(1).all()
    torch.testing.assert_close(sum(limit_to_band(x, band) for band in bands), x, rtol=0, atol=1e-12)


def test_bands_that_touch_share_no_frequency_however_their_edges_round() -> None:
    """In floating point 0.3 + 0.05 < 0.4 - 0.05, and 40 pixels have a frequency of 0.35 pi."""
    assert 0.3 + 0.05 != 0.4 - 0.05
    whole = [Band(centre / 10, 0.05) for centre in range(11)]
    assert sum(band_mask(40, 20, band).int() for band in whole).eq(1).all()


def test_a_wave_passes_its_own_band_only() -> None:
    rows, columns = np.indices((40, 60))
    wave = torch.from_numpy(np.cos(math.pi * (0.2 * rows + 0.5 * columns)))[None]  # distance 0.5
    torch.testing.assert_close(limit_to_band(wave, Band(0.5, 0.05)), wave, rtol=0, atol=1e-12)
    for centre in (0.1, 0.3, 0.7, 0.9):
        assert limit_to_band(wave, Band(centre, 0.1)).abs().max() < 1e-12


def test_any_leading_shape_and_dtype() -> None:
    x = drawn(2, 5, 1, 9, 12)
    whole = limit_to_band(x, Band(0.5, 0.2))
    assert whole.shape == x.shape
    torch.testing.assert_close(whole[1, 2], limit_to_band(x[1, 2], Band(0.5, 0.2)))
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        low = limit_to_band(x.to(dtype), Band(0.5, 0.2))
        assert low.dtype == dtype
        torch.testing.assert_close(low.double(), whole, rtol=0, atol=tolerance)


@pytest.mark.parametrize("centre", PAPER_CENTRES)
def test_noise_has_its_norm_in_its_band_and_comes_from_its_seed(centre: float) -> None:
    band = Band(centre)
    noise = band_noise((4, 3, 32, 33), band, rms=0.02, seed=1, dtype=torch.float64)
    assert noise.square().mean((1, 2, 3)).sqrt().tolist() == pytest.approx([0.02] * 4, rel=1e-12)
    energy = torch.fft.fft2(noise).abs().square()
    assert energy[..., ~band_mask(32, 33, band)].sum() < 1e-24 * energy.sum()
    assert (band_noise((4, 3, 32, 33), band, 0.02, 1, torch.float64) == noise).all()
    assert (band_noise((4, 3, 32, 33), band, 0.02, 2, torch.float64) != noise).all()
    assert noise.square().mean((2, 3)).std() > 1e-6  # of a picture, not of a channel
    assert noise.flatten(1).corrcoef().fill_diagonal_(0).abs().max() < 0.2


def test_an_attack_keeps_the_band_of_its_perturbation() -> None:
    images = 0.5 + 0.01 * drawn(2, 3, 32, 31)
    attacked = images + 0.02 * drawn(2, 3, 32, 31).flip(0).sign()
    parts = [attack_in_band(images, attacked, band) - images for band in equal_bands(4)]
    torch.testing.assert_close(sum(parts), attacked - images, rtol=0, atol=1e-12)
    white = torch.ones_like(images)
    assert attack_in_band(white, white - 0.3 * (attacked > 0.5), Band(0.5, 0.3)).max() == 1.0


@pytest.mark.parametrize("size", range(1, 30))
def test_the_half_width_that_is_advised_is_enough(size: int) -> None:
    advised = math.ceil(1000 / size) / 1000
    for centre in (0.0, 0.05, 0.33, 0.5, 0.71, 0.95, 1.0):
        assert band_mask(size, 1, Band(centre, advised)).any()
