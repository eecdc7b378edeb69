"""Convolutions in int8 against integers by hand, and what cannot be rounded."""

import copy
import math

import numpy as np
import pytest
import torch
from refusals import refusal
from torch import Tensor, nn

from steadyseg.core.model.int8 import Int8Conv, measure_corrections, measure_ranges, round_convolutions
from steadyseg.core.model.int8_record import is_int8_record, is_proven


def by_hand(conv: nn.Module, x: Tensor, least: float, greatest: float) -> Tensor:
    """q = round(r / S) + Z in 0..255, weights in -63..63; the sums are of integers, and S scales them at the end."""
    scale = (greatest - least) / 255
    zero = round(-least / scale)
    integers = ((x.double() / scale).round() + zero).clamp(0, 255) - zero
    axis = 1 if isinstance(conv, nn.ConvTranspose2d) else 0
    weight = conv.weight.detach().double()
    steps = weight.abs().amax([one for one in range(4) if one != axis], keepdim=True) / 63
    exact = type(conv)(4, 6, 3, stride=2, padding=1, groups=conv.groups, bias=False).double()
    exact.weight.data = (weight / steps).round()
    assert exact.weight.abs().max() == 63
    sums = exact(integers).detach()
    return sums * scale * steps.flatten()[:, None, None] + conv.bias.detach()[:, None, None]


@pytest.mark.parametrize(("kind", "groups"), [(nn.Conv2d, 1), (nn.Conv2d, 2), (nn.ConvTranspose2d, 1)])
def test_a_rounded_convolution_is_one_of_integers(kind: type[nn.Conv2d], groups: int) -> None:
    torch.manual_seed(0)
    conv, x = kind(4, 6, 3, stride=2, padding=1, groups=groups), torch.randn(2, 4, 9, 11)
    found = Int8Conv(conv, -1.5, 2.5)(x)
    assert torch.allclose(found.double(), by_hand(conv, x, -1.5, 2.5), atol=1e-5)
    assert 1e-3 < (found - conv(x)).abs().max() < 2, "it rounds and cuts"
    for least, greatest in ((0.5, 2.5), (-2.5, -0.5)):  # zero is always in the range, since padding is zero
        expected = by_hand(conv, x, min(least, 0.0), max(greatest, 0.0))
        assert torch.allclose(Int8Conv(conv, least, greatest)(x).double(), expected, atol=1e-5)


@pytest.mark.parametrize(("kind", "groups"), [(nn.Conv2d, 1), (nn.Conv2d, 4), (nn.ConvTranspose2d, 1)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_correction_restores_the_mean_of_each_channel(kind: type[nn.Conv2d], groups: int, bias: bool) -> None:
    torch.manual_seed(0)
    first = nn.Conv2d(3, 4, 1)
    network = nn.Sequential(first, nn.ReLU(), kind(4, 8, 3, padding=1, groups=groups, bias=bias)).eval()
    pictures = [torch.randn(1, 3, 9, 11) + 1 for _ in range(2)]
    ranges = measure_ranges(network, pictures, max_error=math.inf)
    corrections = measure_corrections(network, ranges, pictures)
    shifts = []
    for given in ({}, corrections):
        rounded = copy.deepcopy(network)
        round_convolutions(rounded, ranges, given)
        errors = [rounded(picture) - network(picture) for picture in pictures]
        shifts.append(torch.stack(errors).mean((0, 1, 3, 4)).abs().max().item())
    assert shifts[0] > 1e-4 and shifts[1] < 1e-6, shifts
    assert "3 corrections of '2', which has 8 channels" in refusal(
        round_convolutions, network, ranges, {"2": torch.zeros(3)}
    )


def test_ranges_are_means_of_the_pictures_extremes_but_for_the_first_convolution() -> None:
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU(), nn.Conv2d(2, 1, 1))
    nn.init.ones_(network[0].weight)
    nn.init.zeros_(network[0].bias)
    pictures = [torch.full((1, 3, 4, 4), value) for value in (1.0, 2.0)]
    pictures[0][..., 0] = 0.5
    assert measure_ranges(network, pictures, max_error=math.inf) == {"2": ((1.5 + 6.0) / 2, (3.0 + 6.0) / 2)}
    assert "no numbers" in refusal(measure_ranges, network, [torch.full((1, 3, 4, 4), torch.nan)])
    assert "has no convolution '7'" in refusal(round_convolutions, network, {"7": (0.0, 1.0)})
    assert "no convolution '1'" in refusal(round_convolutions, network, {"1": (0.0, 1.0)})


def test_a_convolution_whose_channels_differ_in_range_stays_floating_point() -> None:
    torch.manual_seed(0)
    first, depthwise = nn.Conv2d(3, 4, 1, bias=False), nn.Conv2d(4, 4, 3, groups=4)
    network = nn.Sequential(first, depthwise, nn.Conv2d(4, 2, 1))
    pictures = [torch.randn(1, 3, 9, 9) for _ in range(2)]
    assert list(measure_ranges(network, pictures)) == ["1", "2"]
    with torch.no_grad():  # the depthwise convolution's range is of the largest channel: the others round to nothing
        first.weight[1:] *= 1e-3
        depthwise.weight[1:] *= 1e3
    assert list(measure_ranges(network, pictures)) == ["2"]
    assert "suits no convolution" in refusal(measure_ranges, network, pictures, max_error=0.0)


def test_int8_is_taken_unasked_for_a_small_loss_alone() -> None:
    assert is_proven((0.85, 0.846), (0.01, 0.011)) and is_proven((0.85, 0.86), (0.01, 0.01))
    assert not is_proven((0.85, 0.844), (0.01, 0.01)) and not is_proven((0.85, 0.85), (0.01, 0.0125))


RECORD = {
    "ranges": {"a": [0.0, 1.0]},
    "accuracy": [0.9, 0.9],
    "ece": [0.0, 0.0],
    "labels_equal": 1.0,
    "temperature_ratio": 1.0,
}


@pytest.mark.parametrize(
    "change", [{"ranges": 3}, {"ranges": {"a": [0.0]}}, {"accuracy": [0.9, np.nan]}, {"ece": None}, {"labels_equal": 7}]
)
def test_a_record_from_anywhere_is_checked(change: dict[str, object]) -> None:
    assert is_int8_record(RECORD) and not is_int8_record(RECORD | change)
