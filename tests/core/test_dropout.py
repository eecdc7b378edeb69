"""MC dropout: the distribution of its masks, their independence, their layout and type, and the switches."""

import math

import pytest
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout, draw_mask, is_stochastic, set_dropout_active

MANY = 200_003
"""Elements per drawn mask: odd, so that the last word of random bytes is used in part."""


def mask_of(rate: float, seed: int = 0, count: int = MANY, dtype: torch.dtype = torch.float32) -> Tensor:
    torch.manual_seed(seed)
    return draw_mask(torch.empty(count, dtype=dtype), rate)


def correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


@pytest.mark.parametrize("rate", [1 / 256, 0.1, 0.5, 255 / 256])
def test_the_share_of_dropped_elements_is_the_rate(rate: float) -> None:
    rounded = round(256 * rate) / 256
    dropped = int((mask_of(rate) == 0).sum())
    assert abs(rounded - rate) <= 1 / 512
    assert abs(dropped - MANY * rounded) < 5 * math.sqrt(MANY * rounded * (1 - rounded))


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_kept_elements_are_scaled_so_that_the_mean_is_one(rate: float) -> None:
    mask, keep = mask_of(rate, dtype=torch.float64), 1 - round(256 * rate) / 256
    assert sorted(set(mask.tolist())) == pytest.approx([0.0, 1 / keep], abs=1e-15)
    assert abs(mask.mean().item() - 1) < 5 * math.sqrt((1 / keep - 1) / MANY)


@pytest.mark.parametrize("lag", [1, 8, 480])
def test_neighbouring_elements_are_independent(lag: int) -> None:
    mask = mask_of(0.5)
    assert abs(correlation(mask[lag:], mask[:-lag])) < 5 / math.sqrt(MANY)


def test_calls_and_layers_draw_independently() -> None:
    torch.manual_seed(1)
    x, first, second = torch.ones(MANY), Dropout(0.3), Dropout(0.3)
    draws = [first(x), second(x), first(x), second(x)]
    for i, one in enumerate(draws):
        for other in draws[:i]:
            assert abs(correlation(one, other)) < 5 / math.sqrt(MANY)


def test_elements_and_not_channels_are_dropped() -> None:
    torch.manual_seed(0)
    dropped = draw_mask(torch.empty(4, 64, 20, 20), 0.5) == 0
    shares = dropped.float().mean((2, 3))  # 400 elements a channel: 0.15 is six standard deviations
    assert shares.min() > 0.35 and shares.max() < 0.65


@pytest.mark.parametrize(
    ("layout", "dtype"), [(torch.contiguous_format, torch.float64), (torch.channels_last, torch.bfloat16)]
)
def test_a_mask_has_the_type_and_layout_of_its_input(layout: torch.memory_format, dtype: torch.dtype) -> None:
    x = torch.ones(2, 5, 7, 3, dtype=dtype).contiguous(memory_format=layout)
    mask = draw_mask(x, 0.3)
    assert (mask.dtype, mask.shape, mask.stride()) == (x.dtype, x.shape, x.stride())
    result = Dropout(0.3)(x)
    assert result.dtype == dtype and result.is_contiguous(memory_format=layout)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_cropped_map_gets_a_whole_mask(layout: torch.memory_format) -> None:
    """A view into a larger map: every element still has a draw of its own."""
    torch.manual_seed(0)
    view = torch.ones(4, 16, 41, 41).contiguous(memory_format=layout)[..., :40, :40]
    dropped = (draw_mask(view, 0.5) == 0).float()
    count = dropped.numel()
    assert dropped.shape == view.shape
    assert abs(dropped.sum() - count / 2) < 5 * math.sqrt(count / 4)
    assert abs(correlation(dropped[:, 1:], dropped[:, :-1])) < 5 / math.sqrt(count)
    assert abs(correlation(dropped[..., 1:], dropped[..., :-1])) < 5 / math.sqrt(count)


@pytest.mark.parametrize("shape", [(2, 0, 3), (1,)])
def test_empty_and_single_maps_pass(shape: tuple[int, ...]) -> None:
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_dropout_draws_in_eval_and_in_training_and_not_when_switched_off_in_eval() -> None:
    layer, x = Dropout(0.5), torch.ones(1000)
    assert (layer.train()(x) == 0).any() and (layer.eval()(x) == 0).any()
    layer.active = False
    assert torch.equal(layer.eval()(x), x)
    assert (layer.train()(x) == 0).any()  # training is never without it


def test_rate_zero_is_the_identity_even_in_training() -> None:
    layer, x = Dropout(0.0).train(), torch.randn(100)
    assert torch.equal(layer(x), x) and not layer.draws


def test_the_switch_reaches_every_layer_of_a_network() -> None:
    network = nn.Sequential(Dropout(0.5), nn.Sequential(nn.ReLU(), Dropout(0.2))).eval()
    assert is_stochastic(network)
    set_dropout_active(network, False)
    assert not is_stochastic(network) and torch.equal(network(torch.ones(50)), torch.ones(50))
    set_dropout_active(network, True)
    assert is_stochastic(network)
    assert not is_stochastic(nn.Sequential(Dropout(0.0), nn.Dropout(0.5)).eval())


def test_given_masks_are_used_in_their_order() -> None:
    layer, x = Dropout(0.5), torch.tensor([1.0, 2.0, 3.0])
    layer.masks = [torch.tensor([2.0, 0.0, 2.0]), torch.tensor([0.0, 2.0, 0.0])]
    assert layer(x).tolist() == [2.0, 0.0, 6.0] and layer(x).tolist() == [0.0, 4.0, 0.0]
    assert layer.masks == []
