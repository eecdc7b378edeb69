"""Spectra of maps that are known in closed form."""

import math

import pytest
import torch

from steadyseg.studies.analysis.measures.fourier import FLOOR, frequencies, log_amplitude


@pytest.mark.parametrize(("height", "width"), [(16, 16), (15, 15), (16, 24)])
@pytest.mark.parametrize("peak", [2, 5])
def test_a_cosine_along_the_diagonal_peaks_at_its_frequency(height: int, width: int, peak: int) -> None:
    y, x = torch.arange(height)[:, None], torch.arange(width)[None]
    across = round(peak * width / min(height, width))
    wave = 1.0 + torch.cos(2 * math.pi * (peak * y / height + across * x / width))
    amplitude = log_amplitude(wave[None, None])
    assert len(amplitude) == (min(height, width) + 1) // 2
    points = height * width
    assert amplitude[0] == pytest.approx(math.log(points), abs=1e-5)
    assert amplitude[peak] == pytest.approx(math.log(points / 2), abs=1e-4)  # a cosine has half at +f, half at -f
    others = [float(value) for i, value in enumerate(amplitude) if i not in (0, peak)]
    assert max(others) < math.log(10 * FLOOR) + 6  # rounding of 32 bits
    assert frequencies(height, width)[peak] == pytest.approx(2 * peak / min(height, width))


def test_the_axis_ends_just_below_pi() -> None:
    assert frequencies(8, 8).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert frequencies(5, 9).tolist() == pytest.approx([0.0, 0.4, 0.8])
    assert frequencies(2, 2).tolist() == [0.0]


def test_a_constant_has_nothing_above_zero_and_a_point_everything_alike() -> None:
    constant, point = torch.ones(2, 3, 8, 8), torch.zeros(1, 1, 8, 8)
    point[..., 3, 4] = 2.0
    assert (log_amplitude(constant)[1:] < math.log(2 * FLOOR)).all()
    torch.testing.assert_close(log_amplitude(point), torch.full((4,), math.log(2.0 + FLOOR), dtype=torch.float64))


def test_a_blur_takes_from_the_high_frequencies_what_its_response_says() -> None:
    """The 2x2 mean has the response cos(pi f / 2) in each direction, its square on the diagonal."""
    noise = torch.randn(4, 8, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blurred = (noise + noise.roll(1, 2) + noise.roll(1, 3) + noise.roll((1, 1), (2, 3))) / 4
    lost = log_amplitude(blurred) - log_amplitude(noise)
    expected = 2 * torch.log(torch.cos(math.pi * frequencies(32, 32) / 2))
    torch.testing.assert_close(lost, expected, atol=1e-4, rtol=0)
