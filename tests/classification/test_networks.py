"""Every classifier by name: shapes, dropout that stays on, its shared prefix, switches, options that are refused."""

import dataclasses
import json
from typing import Any

import pytest
import torch
from made.classifier import random_input
from refusals import refusal
from torch import Tensor, nn
from torchvision.ops import StochasticDepth

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.chain import skip_rates
from steadyseg.classification.networks.layout import FAMILIES, MODELS
from steadyseg.classification.networks.residual import ResidualBlock
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.dropout import Dropout, is_stochastic, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.predictors import SplitNetwork
from steadyseg.core.smoothing import Prob

ONE_OF_EACH = (
    "alexnet vgg11 prevgg11 resnet18 resnet50 preresnet18 preresnet50 resnext50 wideresnet50 alternet18 alternet50 "
    "vit6 pit6 swin6"
).split()


def narrow(model: str) -> int:
    return {"resnext50": 16, "resnext101": 8}.get(model, 8)


def built(model: str, classes: int = 5, **options: Any) -> Any:
    torch.manual_seed(0)
    return build_classifier(ClassifierOptions(model, **({"channels": narrow(model)} | options)), classes).eval()


def smoothed(model: str) -> bool:
    """Tells whether the family has stages to smooth."""
    return FAMILIES[MODELS[model][0]].stages > 0


def seeded(network: nn.Module, x: Tensor, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    with torch.no_grad():
        return network(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "model", [name if name in ONE_OF_EACH else pytest.param(name, marks=pytest.mark.long) for name in MODELS]
)
def test_every_network_is_random_with_dropout_and_its_prefix_is_not(model: str) -> None:
    network, x = built(model, dropout=0.3, smoothing=smoothed(model)), random_input()
    assert isinstance(network, SplitNetwork)
    expected = seeded(network, x)
    assert expected.shape == (2, 5) and expected.isfinite().all()
    with torch.no_grad():
        state = torch.get_rng_state()
        shared = network.prefix(x)
        assert torch.equal(torch.get_rng_state(), state)  # it drew nothing
        torch.manual_seed(1)
        assert torch.equal(network.suffix(shared), expected)
        assert not torch.equal(network.suffix(shared), expected)
        torch.manual_seed(1)  # what is shared survives
        assert torch.equal(network.suffix(shared), expected)
    set_dropout_active(network, False)
    assert torch.equal(seeded(network, x, 3), seeded(network, x, 4))
    with torch.no_grad():
        assert torch.equal(network.suffix(network.prefix(x)), network(x))


@pytest.mark.parametrize("model", ONE_OF_EACH)
def test_the_prefix_ends_at_the_first_dropout_layer(model: str) -> None:
    network, calls = built(model, dropout=0.3, smoothing=smoothed(model)), []
    for module in network.modules():
        if not any(module.children()):
            module.register_forward_pre_hook(lambda module, _: calls.append(module))
    with torch.no_grad():
        shared = network.prefix(random_input())
        done = len(calls)
        network.suffix(shared)
    assert done > 0 and not any(isinstance(module, Dropout) for module in calls[:done])
    assert isinstance(calls[done], Dropout)
    assert len(calls) == sum(not any(m.children()) for m in network.modules())  # each once


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
    network = built(model, dropout=0.2, smoothing=smoothed(model), stochastic_depth=0.0).train()
    before = {name: buffer.clone() for name, buffer in network.named_buffers() if "running" in name}
    network(random_input(batch=4)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())
    assert all(not torch.equal(buffer, before[name]) for name, buffer in network.named_buffers() if name in before)


@pytest.mark.parametrize("model", ["alternet18", "resnet18", "preresnet18", "vgg11"])
@pytest.mark.parametrize("side", [1, 2, 7, 33])
def test_residual_and_smoothed_networks_take_pictures_of_any_size(model: str, side: int) -> None:
    for stem in (False, True) if model != "vgg11" else (False,):
        network = built(model, stem=stem, smoothing=True)
        assert seeded(network, random_input(side)).isfinite().all()
        assert network(torch.zeros(1, 3, side, side + 5)).shape == (1, 5)


@pytest.mark.parametrize("model", ["resnet18", "alternet50"])
def test_mixed_precision_trains(model: str) -> None:
    network = (
        built(model, dropout=0.3, smoothing=True, stochastic_depth=0.2).train().to(memory_format=torch.channels_last)
    )
    with torch.autocast("cpu", torch.bfloat16):
        out = network(random_input().to(memory_format=torch.channels_last))
    out.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_convolutions_start_with_the_variance_of_their_fan_out() -> None:
    for model in ("resnet18", "vgg11", "alternet50"):
        convs = [m for m in built(model, channels=32).modules() if isinstance(m, nn.Conv2d)]
        for conv in convs:
            expected = (2 / (conv.out_channels * conv.kernel_size[0] ** 2)) ** 0.5
            if conv.weight.numel() > 2000:
                assert float(conv.weight.detach().std()) == pytest.approx(expected, rel=0.1)
            assert conv.bias is None or model == "alternet50"


def test_stochastic_depth_rises_linearly() -> None:
    assert skip_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
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
        given = built(model, smoothing=True, prob_scale=2.5)
        scales = [m.scale for m in given.modules() if isinstance(m, Prob)]
        assert len(scales) >= 3 and set(scales) == {2.5}
        assert {m.scale for m in built(model, smoothing=True).modules() if isinstance(m, Prob)} == {10.0}


def test_the_options_of_a_record_build_the_same_network() -> None:
    options = ClassifierOptions(
        "alternet18", 4, smoothing=True, smoothing_places=(1, 3), attention=(0, 0, 1, 1), attention_window=3
    )
    record = json.loads(json.dumps(dataclasses.asdict(options)))
    torch.manual_seed(0)
    one = build_classifier(options, 3).eval()
    torch.manual_seed(0)
    assert torch.equal(seeded(build_classifier(record, 3).eval(), random_input()), seeded(one, random_input()))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"network": "resnet_18"}, "did you mean resnet18"),
        ({"network": "what"}, "known are alexnet, vgg11"),
        ({"colour": "blue"}, "unknown option 'colour'"),
        ({"network": 5}, "network of a classifier must be a text, got 5"),
        ({"channels": "wide"}, "must be a whole number, got 'wide'"),
        ({"stem": 1}, "must be true or false"),
        ({"dropout": None}, "must be a number"),
        ({"head": "max"}, "gap, mlp, gmaxp, gmedp, gap-clip, gap-mlp, bn-gap, cls or none"),
        ({"smoothing_places": 3, "smoothing": True}, "whole numbers or none, got 3"),
        ({"channels": 0}, "channels must lie in"),
        ({"dropout": float("nan")}, "dropout must lie in"),
        ({"dropout": 0.001}, "would round to none"),
        ({"blur": 4, "smoothing": True}, "blur size"),
        ({"blur": 3}, "does nothing without smoothing"),
        ({"smoothing_places": [5], "smoothing": True}, "one or more of 1..4, got 5"),
        ({"smoothing_places": [], "smoothing": True}, "got none"),
        ({"head": "bn-gap"}, "choose from gap, mlp, gmaxp, gmedp"),
        ({"network": "vgg16", "stem": True}, "does not apply to vgg16"),
        ({"attention": [0, 1, 1, 2]}, "does not apply to resnet18 but to alternet"),
        ({"prob_scale": 0.0, "smoothing": True}, "prob_scale must lie in"),
        ({"network": "timm:resnet18", "prob_scale": 2.0, "smoothing": True}, "does not apply to timm:resnet18"),
        ({"img_size": 32}, "does not apply to resnet18 but to vit, pit, timm:NAME"),
        ({"network": "resnext50", "channels": 8}, "multiples of 16"),
        ({"network": "resnext101", "channels": 4}, "multiples of 8"),
        ({"network": "alternet50", "attention": [0, 1, 1]}, "may be at most 1,2,3,2, got 0,1,1"),
        ({"network": "alternet50", "attention": [2, 1, 1, 1]}, "may be at most 1,2,3,2"),
        ({"network": "alternet18", "attention": [0, 0, 0, -1]}, "may be at most 1,1,1,1"),
        ({"network": "alternet18", "attention_window": 0}, "attention_window must lie in"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused_in_one_line(options: dict[str, Any], says: str) -> None:
    """They may come from a file's record, so wrong types are bad input too."""
    assert says in refusal(build_classifier, options, 4)


def test_pretrained_weights_are_refused_for_networks_of_ours() -> None:
    with pytest.raises(InputError, match="does not apply to resnet18 but to timm:NAME"):
        build_classifier(ClassifierOptions(pretrained=True), 4)


@pytest.mark.parametrize("classes", [0, 1, -3])
def test_a_classifier_needs_two_classes(classes: int) -> None:
    with pytest.raises(InputError, match="two or more classes"):
        build_classifier(ClassifierOptions(), classes)


@pytest.mark.parametrize(
    ("model", "options", "least"),
    [
        ("vgg11", {}, 32),
        ("vgg11", {"head": "gap"}, 16),
        ("vgg11", {"head": "gmedp"}, 32),
        ("alexnet", {}, 15),
        ("alexnet", {"stem": True}, 63),
        ("alexnet", {"stem": True, "smoothing": True}, 35),
        ("resnet18", {"head": "gmedp"}, 9),
    ],
    ids=str,
)
def test_pictures_that_are_too_small_are_refused_in_one_line(model: str, options: dict[str, Any], least: int) -> None:
    network = built(model, **options)
    assert seeded(network, random_input(least)).isfinite().all()
    for side in {1, 3, least - 1}:
        assert "pictures" in refusal(seeded, network, random_input(side))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "side"),
    [("alexnet", 32), ("vgg11", 32), ("prevgg11", 32), ("resnet18", 32), ("preresnet18", 32), ("alternet18", 45)],
)
def test_every_family_exports(model: str, side: int) -> None:
    network = built(model, dropout=0.3, smoothing=True)
    set_dropout_active(network, False)
    x = random_input(side)
    program = torch.export.export(network, (x,), strict=False).module()
    torch.testing.assert_close(seeded(program, x), seeded(network, x))
