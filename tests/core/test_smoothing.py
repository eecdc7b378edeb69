"""Spatial smoothing against convolutions written out with loops, and the published kernels and border rules."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from steadyseg.classification.networks.build import build_classifier
from steadyseg.core.errors import InputError
from steadyseg.core.smoothing import DEFAULT_SCALE, Blur, Prob, SpatialSmoothing
from steadyseg.seg.networks.build import build_network

LINES = {1: [1], 2: [1, 1], 3: [1, 2, 1], 5: [1, 4, 6, 4, 1]}
"""arXiv 2105.12639, Eq. 8: the 2-D kernel is the outer product over its sum."""
PROBS = ("tanh", "relu6", "constant", "sigmoid", "signed-tanh", "none")


def slow_blur(x: Tensor, size: int, before: int, after: int) -> np.ndarray:
    """Zero padding of `before` (left, top) and `after` (right, below), then the kernel at every place, by loops."""
    kernel = np.outer(LINES[size], LINES[size]) / np.sum(LINES[size]) ** 2
    padded = np.pad(x.numpy().astype(np.float64), [(0, 0), (0, 0), (before, after), (before, after)])
    height, width = padded.shape[2] - size + 1, padded.shape[3] - size + 1
    result = np.zeros((*x.shape[:2], height, width))
    for row in range(height):
        for column in range(width):
            patch = padded[:, :, row : row + size, column : column + size]
            result[:, :, row, column] = (patch * kernel).sum((2, 3))
    return result


def slow_prob(name: str, z: float, t: float) -> float:
    if name == "tanh":
        return max(0.0, t * math.tanh(z / t))
    if name == "signed-tanh":
        return t * math.tanh(z / t)
    if name == "relu6":
        return min(max(0.0, z), t)
    if name == "constant":
        return z / t
    if name == "sigmoid":
        return max(0.0, 4 * t * (1 / (1 + math.exp(-z / t)) - 0.5))
    return z


@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (1, 2, 2, 1)])
@pytest.mark.parametrize(
    ("size", "padding", "before", "after"),
    [
        (1, "published", 0, 0),
        (2, "published", 1, 1),
        (3, "published", 1, 1),
        (5, "published", 2, 2),
        (1, "same", 0, 0),
        (2, "same", 0, 1),
        (3, "same", 1, 1),
        (5, "same", 2, 2),
    ],
)
def test_the_blur_is_the_written_out_convolution(size, padding, before, after, shape):
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(size))
    blurred = Blur(size, padding)(x)  # type: ignore[arg-type]
    np.testing.assert_allclose(blurred.numpy(), slow_blur(x, size, before, after), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("size", "distinct"),
    [(1, [1.0]), (2, [0.25]), (3, [0.0625, 0.125, 0.25]), (5, [v / 256 for v in (1, 4, 6, 16, 24, 36)])],
)
def test_an_impulse_shows_the_published_kernel_of_unit_sum(size: int, distinct: list[float]) -> None:
    impulse = torch.zeros(1, 1, 11, 11)
    impulse[..., 5, 5] = 1.0
    response = Blur(size, "same")(impulse)
    assert response.sum().item() == pytest.approx(1.0, abs=1e-6)
    assert sorted(set(response[response > 0].tolist())) == pytest.approx(distinct, abs=1e-7)
    assert response.max().item() == pytest.approx(max(distinct), abs=1e-7)


@pytest.mark.parametrize("size", [2, 3])
def test_the_blur_keeps_the_type(size: int) -> None:
    assert SpatialSmoothing(size=size)(torch.ones(1, 2, 4, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.parametrize("scale", [None, 2.5])
@pytest.mark.parametrize("name", PROBS)
def test_prob_is_its_formula(name: str, scale: float | None) -> None:
    z = torch.cat([torch.linspace(-40, 40, 81, dtype=torch.float64), torch.tensor([-1e-3, 1e-3])])
    t = scale or {"tanh": 10.0, "relu6": 6.0, "constant": 5.0, "sigmoid": 10.0, "signed-tanh": 10.0, "none": 1.0}[name]
    expected = [slow_prob(name, value, t) for value in z.tolist()]
    assert Prob(name, scale)(z).tolist() == pytest.approx(expected, abs=1e-12)  # type: ignore[arg-type]


def test_softmax_shares_a_points_bound_between_its_channels() -> None:
    z = 20 * torch.randn(2, 5, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found = Prob("softmax")(z)
    expected = 10 * (z / 10).exp() / (z / 10).exp().sum(1, keepdim=True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(1), torch.full((2, 3, 4), 10.0, dtype=torch.float64))


def test_bn_tanh_normalises_first_and_learns_how() -> None:
    z = 3 + 8 * torch.randn(4, 2, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    layer = SpatialSmoothing("bn-tanh", channels=2).double()
    assert [weight.shape for weight in layer.parameters()] == [(2,), (2,)]
    normal = (z - z.mean((0, 2, 3), keepdim=True)) / (z.var((0, 2, 3), unbiased=False, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(layer.prob(normal * 1.0), Prob("tanh")(normal), atol=1e-4, rtol=0)
    torch.testing.assert_close(layer(z), SpatialSmoothing("tanh")(normal))
    with pytest.raises(InputError, match="needs the number of channels"):
        Prob("bn-tanh")


def test_every_kind_of_network_gives_bn_tanh_its_channels() -> None:
    prob = "bn-tanh"
    networks = [
        build_classifier({"network": name, "channels": 4, "smoothing": True, "prob": prob}, 3)
        for name in ("resnet18", "preresnet18", "vgg11", "alexnet", "alternet18")
    ]
    networks.append(build_classifier({"network": "timm:resnet18", "smoothing": True, "prob": prob}, 3))
    networks.append(build_network("unet", {"channels": 4, "prob": prob, "dropout": 0.0}, 3))
    smp = {"encoder": "resnet18", "encoder_weights": None, "encoder_smoothing": True, "encoder_prob": prob}
    networks.append(build_network("smp", smp, 3))
    for network in networks:
        logits = network(torch.randn(2, 3, 32, 32))
        assert logits.isfinite().all()
        assert any(".prob.norm." in name for name in network.state_dict())


@pytest.mark.parametrize(("name", "size"), [("tanh", 2), ("signed-tanh", 3)])
def test_smoothing_is_prob_then_blur(name: str, size: int) -> None:
    z = 8 * torch.randn(1, 2, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    prob = z.clone().apply_(lambda value: slow_prob(name, value, DEFAULT_SCALE[name]))
    smoothed = SpatialSmoothing(name, size)(z)  # type: ignore[arg-type]
    np.testing.assert_allclose(smoothed.numpy(), slow_blur(prob, size, 1, 1), rtol=0, atol=1e-6)


def test_smoothing_adds_nothing_to_train_or_save() -> None:
    layer = SpatialSmoothing()
    assert not list(layer.parameters()) and not layer.state_dict()
