"""Weights in bf16: each near its own value, each filter's sum its own."""

import numpy as np
import openvino
import pytest
import torch

from steadyseg.export.file.bf16_weights import round_to_bf16, rounded
from steadyseg.export.file.sessions import compile_openvino

FINE = 2.0**-8
"""Largest relative step between two numbers of bf16, 1.0 to 1.0078: half of it is the error of the nearest."""


@pytest.mark.parametrize("length", [9, 25, 400])
def test_filters_keep_their_sums(length: int) -> None:
    exact = np.random.default_rng(length).normal(0.01, 0.1, (64, length)).astype(np.float32)
    exact[:, 3] = 0.0
    found, plain = rounded(exact), torch.from_numpy(exact).bfloat16().float().numpy()
    assert (found == torch.from_numpy(found).bfloat16().float().numpy()).all() and (found[:, 3] == 0).all()
    errors, plainly = (np.abs((one - exact.astype(np.float64)).sum(1)).mean() for one in (found, plain))
    assert errors < 0.1 * plainly, (errors, plainly)
    assert ((found - exact) ** 2).mean() < 1.5 * ((plain - exact) ** 2).mean()
    assert (np.abs(found - exact).max(1) <= 1.01 * FINE * np.abs(exact).max(1)).all()


def test_numbers_of_bf16_stay_as_they_are() -> None:
    exact = np.array([[1.0, -0.5, 0.0, 2.0**-130], [0.0, 0.0, 0.0, 0.0]], np.float32)
    assert (rounded(exact) == exact).all()


@pytest.mark.slow
def test_the_filters_of_every_kind_of_convolution_are_rounded_and_nothing_else() -> None:
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(4, 6, 3), torch.nn.Conv2d(6, 6, 3, groups=6), torch.nn.Flatten(), torch.nn.Linear(24, 2)
    network, picture = torch.nn.Sequential(*layers).eval(), torch.randn(1, 4, 6, 6)
    model = openvino.convert_model(torch.export.export(network, (picture,)))
    before = weights(model)
    round_to_bf16(model)
    for name, values in weights(model).items():
        is_rounded = bool((values == torch.from_numpy(values).bfloat16().float().numpy()).all())
        assert is_rounded == (name != "MatMul"), name
        sums = [one.astype(np.float64).reshape(6, -1).sum(1) for one in (values, before[name]) if name != "MatMul"]
        assert not sums or np.abs(sums[0] - sums[1]).max() < 1e-4
    (found,) = compile_openvino(model, "f32")([picture.numpy()]).values()
    assert np.abs(found - network(picture).detach().numpy()).max() < 0.01


def weights(model: openvino.Model) -> dict[str, np.ndarray]:
    kinds = ("Convolution", "GroupConvolution", "MatMul")
    found = {one.get_type_name(): one for one in model.get_ops() if one.get_type_name() in kinds}
    assert len(found) == len(kinds)
    return {name: one.input_value(1).get_node().get_data().copy() for name, one in found.items()}
