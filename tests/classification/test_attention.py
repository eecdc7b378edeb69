"""Window attention against masked attention written as loops over points, for every kind of map size."""

import math

import pytest
import torch
from torch import Tensor

from steadyseg.classification.networks.attention import WindowAttention

SIZES = [(8, 8), (9, 7), (5, 12), (3, 3), (2, 9), (1, 1)]
"""Multiples of the windows below, and not, and smaller."""


def attention(window: int, heads: int = 2, d: int = 3, shift: int = 0) -> WindowAttention:
    torch.manual_seed(0)
    layer = WindowAttention(5, 6, heads, d, window, shift).double()
    torch.nn.init.normal_(layer.position_bias)
    return layer.eval()


def naive(layer: WindowAttention, x: Tensor) -> Tensor:
    """Point by point: who is in my window, how much is each of them worth, what is their mean value."""
    window, heads = layer.window, layer.heads
    batch, _, height, width = x.shape
    up, left = (layer.shift if side > window else 0 for side in (height, width))
    qkv = torch.einsum("oc,bcyx->boyx", layer.to_qkv.weight[:, :, 0, 0], x)
    d = qkv.shape[1] // (3 * heads)
    q, k, v = qkv.reshape(batch, 3, heads, d, height, width).unbind(1)
    table = layer.position_bias.reshape(2 * window - 1, 2 * window - 1)
    mixed = torch.zeros(batch, heads, d, height, width, dtype=x.dtype)
    for y in range(height):
        for x_ in range(width):
            around = [
                (i, j)
                for i in range(height)
                for j in range(width)
                if (i + up) // window == (y + up) // window and (j + left) // window == (x_ + left) // window
            ]
            for b in range(batch):
                for h in range(heads):
                    scores = [
                        float(q[b, h, :, y, x_] @ k[b, h, :, i, j]) / math.sqrt(d)
                        + float(table[i - y + window - 1, j - x_ + window - 1])
                        for i, j in around
                    ]
                    weights = [math.exp(score) for score in scores]
                    for weight, (i, j) in zip(weights, around, strict=True):
                        mixed[b, h, :, y, x_] += weight / sum(weights) * v[b, h, :, i, j]
    out = torch.einsum("oc,bcyx->boyx", layer.to_out.weight[:, :, 0, 0], mixed.flatten(1, 2))
    return out + layer.to_out.bias[:, None, None]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("window", "shift"), [(4, 0), (3, 0), (1, 0), (4, 2), (3, 1)])
def test_it_is_attention_among_the_points_of_a_window(window: int, shift: int, size: tuple[int, int]) -> None:
    layer = attention(window, shift=shift)
    x = torch.randn(2, 5, *size, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), naive(layer, x), rtol=0, atol=1e-12)


def test_the_table_counts_as_a_bias_and_is_shared_by_the_heads() -> None:
    layer = WindowAttention(5, 6, 3, 4, 7)
    assert layer.position_bias.shape == (13 * 13,)  # one dimension: the optimiser does not decay it
    assert sum(p.numel() for p in layer.parameters()) == 5 * 3 * 12 + 169 + 12 * 6 + 6


def test_the_memory_format_makes_no_difference() -> None:
    layer, x = attention(4), torch.randn(2, 5, 9, 7, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(layer(x.to(memory_format=torch.channels_last)), layer(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [(9, 7), (2, 3)], ids=str)
def test_it_exports_with_a_fixed_size_and_a_free_batch(size: tuple[int, int]) -> None:
    layer = attention(4)
    x = torch.randn(2, 5, *size, dtype=torch.float64)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},), strict=False).module()
    more = torch.randn(3, 5, *size, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(program(more), layer(more), rtol=0, atol=1e-12)
