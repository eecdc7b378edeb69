"""Every classifier by name: shapes, dropout that stays on, its shared prefix, smoothing, stochastic depth, training."""

import dataclasses
import json
from typing import Any

import pytest
import torch
from made.classifier import random_input
from torch import Tensor, nn
from torchvision.ops import StochasticDepth

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.layout import FAMILIES, MODELS
from steadyseg.classification.networks.residual import ResidualBlock
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.dropout import Dropout, is_stochastic, set_dropout_active
from steadyseg.core.predictors import SplitNetwork
from steadyseg.core.smoothing import Prob

ONE_OF_EACH = (
    "alexnet vgg11 prevgg11 resnet18 resnet50 preresnet18 preresnet50 resnext50 wideresnet50 alternet18 alternet50 "
    "vit6 pit6 swin6"
).split()


def built(model: str, classes: int = 5, **options: Any) -> Any:
    torch.manual_seed(0)
    narrow = {"resnext50": 16}.get(model, 8)
    return build_classifier(ClassifierOptions(model, **({"channels": narrow} | options)), classes).eval()


def smoothed(model: str) -> bool:
    """Tells whether the family has stages to smooth."""
    return FAMILIES[MODELS[model][0]].stages > 0


def seeded(network: nn.Module, x: Tensor, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    with torch.no_grad():
        return network(x)  # type: ignore[no-any-return]


@torch.no_grad()
@pytest.mark.parametrize(
    "model", [name if name in ONE_OF_EACH else pytest.param(name, marks=pytest.mark.long) for name in MODELS]
)
def test_the_prefix_is_all_before_the_first_dropout_layer_and_draws_nothing(model: str) -> None:
    network, x = built(model, dropout=0.3, smoothing=smoothed(model)), random_input()
    assert isinstance(network, SplitNetwork)
    expected, calls = seeded(network, x), list[nn.Module]()
    assert expected.shape == (2, 5) and expected.isfinite().all()
    for module in network.modules():
        if not any(module.children()):
            module.register_forward_pre_hook(lambda module, _: calls.append(module))
    state = torch.get_rng_state()
    shared, done = network.prefix(x), len(calls)
    assert torch.equal(torch.get_rng_state(), state)
    assert done > 0 and not any(isinstance(module, Dropout) for module in calls)
    torch.manual_seed(1)
    assert torch.equal(network.suffix(shared), expected)
    assert isinstance(calls[done], Dropout)
    assert len(calls) == sum(not any(m.children()) for m in network.modules())  # each once
    assert not torch.equal(network.suffix(shared), expected)
    torch.manual_seed(1)  # what is shared survives
    assert torch.equal(network.suffix(shared), expected)
    set_dropout_active(network, False)
    assert torch.equal(seeded(network, x, 3), seeded(network, x, 4))
    assert torch.equal(network.suffix(network.prefix(x)), network(x))


@pytest.mark.parametrize("model", ONE_OF_EACH)
def test_dropout_and_smoothing_change_no_weight(model: str) -> None:
    full, plain, x = built(model, dropout=0.3, smoothing=smoothed(model)), built(model), random_input()
    assert not [m for m in plain.modules() if isinstance(m, Dropout)] and not is_stochastic(plain)
    assert all(torch.equal(a, b) for a, b in zip(full.state_dict().values(), plain.state_dict().values(), strict=True))
    plain.load_state_dict(full.state_dict())  # the names too
    rated = built(model, dropout=0.3)
    set_dropout_active(rated, False)
    assert torch.equal(seeded(rated, x), seeded(plain, x))
    set_dropout_active(full, False)
    assert torch.equal(seeded(full, x), seeded(plain, x)) != smoothed(model)


@pytest.mark.parametrize("model", ONE_OF_EACH)
def test_training_reaches_every_weight_and_statistic(model: str) -> None:
    network = built(model, dropout=0.2, smoothing=smoothed(model)).train()
    before = {name: buffer.clone() for name, buffer in network.named_buffers() if "running" in name}
    network(random_input(batch=4)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())
    assert all(not torch.equal(buffer, before[name]) for name, buffer in network.named_buffers() if name in before)


@pytest.mark.parametrize("model", ["alternet18", "resnet18", "preresnet18", "vgg11"])
def test_residual_and_smoothed_networks_take_pictures_of_any_size(model: str) -> None:
    for stem in (False, True) if model != "vgg11" else (False,):
        network = built(model, stem=stem, smoothing=True)
        for side in (1, 2, 7, 33):
            assert seeded(network, random_input(side)).isfinite().all()
            assert network(torch.zeros(1, 3, side, side + 5)).shape == (1, 5)


def test_mixed_precision_trains() -> None:
    network = built("alternet50", dropout=0.3, smoothing=True, stochastic_depth=0.2).train()
    with torch.autocast("cpu", torch.bfloat16):
        out = network.to(memory_format=torch.channels_last)(random_input().to(memory_format=torch.channels_last))
    out.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_convolutions_start_with_the_variance_of_their_fan_out() -> None:
    for model in ("resnet18", "vgg11", "alternet50"):
        for conv in [m for m in built(model, channels=32).modules() if isinstance(m, nn.Conv2d)]:
            expected = (2 / (conv.out_channels * conv.kernel_size[0] ** 2)) ** 0.5
            if conv.weight.numel() > 2000:
                assert float(conv.weight.detach().std()) == pytest.approx(expected, rel=0.1)
            assert conv.bias is None or model == "alternet50"


def test_stochastic_depth_rises_linearly() -> None:
    for model, blocks in (("resnet18", 8), ("preresnet50", 16), ("alternet50", 17)):
        rates = [m.p for m in built(model, stochastic_depth=0.5).modules() if isinstance(m, StochasticDepth)]
        assert rates == pytest.approx([0.5 * i / (blocks - 1) for i in range(1, blocks)])  # the first is never left out
        assert not [m for m in built(model).modules() if isinstance(m, StochasticDepth)]


def test_stochastic_depth_leaves_the_branch_out_in_training_only() -> None:
    torch.manual_seed(0)
    block, x = ResidualBlock(6, 6, 1, 0.0, 0.5), torch.randn(64, 6, 4, 4)
    with torch.no_grad():
        block(x)  # running statistics
        block.last.eval()
        block.first.eval()
        branch = block.last(block.first(x))
        out = block(x)
        left_out = (out == x.relu()).flatten(1).all(1)
        torch.testing.assert_close(out[~left_out], (x + 2 * branch)[~left_out].relu())
        assert 16 < left_out.sum() < 48
        torch.testing.assert_close(block.eval()(x), (x + branch).relu())


def test_the_scale_of_the_smoothing_reaches_every_layer() -> None:
    for model in ("resnet18", "vgg11", "alternet18"):
        scales = [m.scale for m in built(model, smoothing=True, prob_scale=2.5).modules() if isinstance(m, Prob)]
        assert len(scales) >= 3 and set(scales) == {2.5}


def test_the_options_of_a_record_build_the_same_network() -> None:
    given = {"smoothing_places": (1, 3), "attention": (0, 0, 1, 1), "attention_window": 3}
    options = ClassifierOptions("alternet18", 4, smoothing=True, **given)  # type: ignore[arg-type]
    record = json.loads(json.dumps(dataclasses.asdict(options)))
    torch.manual_seed(0)
    one = build_classifier(options, 3).eval()
    torch.manual_seed(0)
    assert torch.equal(seeded(build_classifier(record, 3).eval(), random_input()), seeded(one, random_input()))
