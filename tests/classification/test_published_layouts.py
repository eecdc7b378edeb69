"""Our classifiers against torchvision's, timm's and functions from the published tables."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
import torchvision
from made.classifier import random_input
from torch import Tensor, nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.layout import RESIDUAL_BLOCKS, VGG_CONVS
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.dropout import Dropout
from steadyseg.core.smoothing import SpatialSmoothing

TORCHVISION = {
    **{name: name for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")},
    "resnext50": "resnext50_32x4d",
    "resnext101": "resnext101_32x8d",
    "wideresnet50": "wide_resnet50_2",
    "wideresnet101": "wide_resnet101_2",
}


BATCH_NORM = (("weight", 0.5, 1.2), ("bias", -0.3, 0.3), ("running_mean", -0.2, 0.2), ("running_var", 0.5, 1.5))
"""Ranges of drawn BatchNorms that have an effect, at a scale that keeps deep networks finite."""


def built(model: str, classes: int = 10, **options: Any) -> nn.Module:
    return build_classifier(ClassifierOptions(model, **options), classes).eval()


def count(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def randomised(network: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for name, low, high in BATCH_NORM:
                nn.init.uniform_(getattr(module, name), low, high, generator=generator)
    return network.eval()


def on_meta(model: str, classes: int, **options: Any) -> nn.Module:
    with torch.device("meta"):
        return built(model, classes, **options)


def taking(ours: nn.Module, tensors: list[Tensor]) -> nn.Module:
    """`ours` from the meta device with the tensors in the order of its own state, one to one."""
    names = list(ours.state_dict())
    ours.load_state_dict(dict(zip(names, tensors, strict=True)), assign=True)
    return ours.eval()


def logits(network: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        result: Tensor = network(x)
    return result / result.std()  # random weights make logits of any size


def test_networks_have_torchvisions_parameters() -> None:
    """VGG's without the biases of its convolutions."""
    for model, name in TORCHVISION.items():
        with torch.device("meta"):
            theirs = getattr(torchvision.models, name)()
        ours = on_meta(model, 1000, stem=True)
        assert [t.shape for t in ours.state_dict().values()] == [t.shape for t in theirs.state_dict().values()], model
    for depth in VGG_CONVS:
        with torch.device("meta"):
            theirs = getattr(torchvision.models, f"vgg{depth}_bn")()
        biases = sum(m.bias.numel() for m in theirs.modules() if isinstance(m, nn.Conv2d))
        assert count(on_meta(f"vgg{depth}", 1000)) == count(theirs) - biases


@pytest.mark.parametrize(
    "model",
    ["resnet18", *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet50", "resnext50", "wideresnet50"))],
)
def test_residual_networks_give_torchvisions_logits(model: str) -> None:
    torch.manual_seed(0)
    theirs = randomised(getattr(torchvision.models, TORCHVISION[model])(num_classes=10)).double()
    ours = taking(on_meta(model, 10, stem=True), list(theirs.state_dict().values()))
    for side in (64, 97) if model == "resnet18" else (64,):
        x = random_input(side, batch=1).double()
        torch.testing.assert_close(logits(ours, x), logits(theirs, x), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_vgg16_gives_torchvisions_logits_with_the_biases_in_the_running_means() -> None:
    torch.manual_seed(0)
    theirs = randomised(torchvision.models.vgg16_bn(num_classes=10, init_weights=False))
    state = theirs.state_dict()
    for name, module in theirs.features.named_modules():
        if isinstance(module, nn.Conv2d):  # BatchNorm removes a constant: norm(x + b, mean) = norm(x, mean - b)
            nn.init.uniform_(module.bias, -0.5, 0.5)
            bias = state.pop(f"features.{name}.bias").clone()
            state[f"features.{int(name) + 1}.running_mean"] = (
                state[f"features.{int(name) + 1}.running_mean"].clone() - bias
            )
    ours = taking(on_meta("vgg16", 10), list(state.values()))
    x = random_input(64, batch=1)
    torch.testing.assert_close(logits(ours, x), logits(theirs, x), rtol=0, atol=1e-5)


def test_alexnet_gives_torchvisions_logits_where_that_has_no_biases() -> None:
    torch.manual_seed(0)
    theirs = torchvision.models.alexnet(num_classes=10).eval()
    state = theirs.state_dict()
    convs = [name for name, m in theirs.features.named_modules() if isinstance(m, nn.Conv2d)]
    assert sum(nn.init.zeros_(state.pop(f"features.{name}.bias")).numel() for name in convs) == 1152
    ours = taking(on_meta("alexnet", 10, stem=True), list(state.values()))
    for side in (224, 150):
        torch.testing.assert_close(
            logits(ours, random_input(side)), logits(theirs, random_input(side)), rtol=0, atol=1e-5
        )
    assert count(on_meta("alexnet", 1000, stem=True)) == 61_100_840 - 1152


@pytest.mark.slow
def test_pre_activation_resnet_50_gives_timms_logits() -> None:
    torch.manual_seed(0)
    theirs = randomised(timm.create_model("resnetv2_50", pretrained=False, num_classes=10)).double()
    inside = {"norm1": "activate.0", "conv1": "first.0", "norm2": "first.1", "conv2": "first.3", "norm3": "first.4"}
    inside |= {"stem.conv": "stem.0", "conv3": "last", "downsample.conv": "shortcut", "head.fc": "head.4"}
    renamed = {}
    for name, tensor in theirs.state_dict().items():
        name = re.sub(r"^stages\.(\d)\.blocks", lambda m: f"stage{int(m[1]) + 1}", name)
        for old, new in inside.items():
            name = name.replace(f"{old}.", f"{new}.")
        name = re.sub(r"^norm\.", "head.0.", name)
        renamed[name] = tensor.flatten(1) if name == "head.4.weight" else tensor  # theirs is a 1x1 convolution
    ours = on_meta("preresnet50", 10, stem=True)
    ours.load_state_dict(renamed, assign=True)
    x = random_input(97).double()
    torch.testing.assert_close(logits(ours, x), logits(theirs, x), rtol=0, atol=1e-9)


class Written:
    """Pre-activation networks once more: functions over the tensors in the order of their use."""

    def __init__(self, network: nn.Module) -> None:
        self.state = {k: t for k, t in network.state_dict().items() if not k.endswith("num_batches_tracked")}

    def norm_relu(self, x: Tensor, name: str) -> Tensor:
        gain, shift, mean, variance = (
            self.state.pop(f"{name}.{part}").view(1, -1, 1, 1)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return ((x - mean) / (variance + 1e-5).sqrt() * gain + shift).clamp_min(0)

    def conv(self, x: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = self.state.pop(f"{name}.weight")
        return F.conv2d(x, weight, None, stride, weight.shape[-1] // 2)

    def gap(self, x: Tensor, name: str) -> Tensor:
        return x.mean((2, 3)) @ self.state.pop(f"{name}.weight").T + self.state.pop(f"{name}.bias")


def masks_for(network: nn.Module, x: Tensor) -> list[Tensor]:
    """Feeds fixed masks to every dropout layer and returns them in order."""
    masks: list[Tensor] = []

    def feed(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, Dropout)
        layer.masks = [2.0 * (torch.rand_like(inputs[0]) < 0.5)]
        masks.append(layer.masks[0])

    for module in network.modules():
        if isinstance(module, Dropout):
            module.register_forward_pre_hook(feed)
    return masks


def written(model: str, smoothing: bool, **options: Any) -> tuple[Tensor, Tensor]:
    """Logits with drawn BatchNorms and fixed masks, ours and of the published functions, over their deviation."""
    torch.manual_seed(0)
    network = randomised(built(model, channels=4, dropout=0.5, smoothing=smoothing, **options)).double()
    x = random_input(32).double()
    masks = masks_for(network, x)
    result, drawn, net = logits(network, x), iter(masks), Written(network)
    y = (written_resnet if model == "preresnet18" else written_vgg)(net, x, drawn, smoothing)
    y = net.gap(net.norm_relu(y, "head.0"), "head.4")
    assert not net.state and next(drawn, None) is None  # nothing is left over
    return result, y / y.std()


def written_resnet(net: Written, x: Tensor, drawn: Iterator[Tensor], smoothing: bool) -> Tensor:
    y = net.conv(x, "stem.0")
    for stage, blocks in enumerate(RESIDUAL_BLOCKS[18], start=1):
        for block in range(blocks):
            name, stride = f"stage{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            activated = net.norm_relu(y, f"{name}.activate.0")
            shortcut = net.conv(activated, f"{name}.shortcut", 2) if stride == 2 else y
            inner = net.norm_relu(net.conv(activated, f"{name}.first.0", stride), f"{name}.first.1")
            y = shortcut + net.conv(inner * next(drawn), f"{name}.last")
        if smoothing and stage < 4:
            y = smoothed(y)
    return y


def written_vgg(net: Written, x: Tensor, drawn: Iterator[Tensor], smoothing: bool) -> Tensor:
    for stage, convs in enumerate(VGG_CONVS[11], start=1):
        if stage > 1:
            x = F.max_pool2d(x, 2)
        for block in range(convs):
            name = f"stage{stage}.{block + (stage > 1)}.first"
            x = net.conv(net.norm_relu(x, f"{name}.0"), f"{name}.2") * next(drawn)
        if smoothing:
            x = smoothed(x)
    return x


def smoothed(x: Tensor) -> Tensor:
    x = F.pad((10 * (x / 10).tanh()).clamp_min(0), (1, 1, 1, 1))
    return (x[..., 1:, 1:] + x[..., :-1, 1:] + x[..., 1:, :-1] + x[..., :-1, :-1]) / 4


@pytest.mark.parametrize("smoothing", [False, True])
@pytest.mark.parametrize(("model", "options"), [("preresnet18", {}), ("prevgg11", {"head": "bn-gap"})])
def test_pre_activation_networks_are_the_published_ones(model: str, options: dict[str, Any], smoothing: bool) -> None:
    torch.testing.assert_close(*written(model, smoothing, **options), rtol=0, atol=1e-9)


SIDES = {
    ("resnet18", 32): ([32, 16, 8, 4], [33, 18, 10, 6]),
    ("resnet50", 224): ([56, 28, 14, 7], [57, 30, 16, 9]),
    ("preresnet18", 32): ([32, 16, 8, 4], [33, 18, 10, 5]),
    ("preresnet50", 224): ([56, 28, 14, 7], [57, 30, 16, 8]),
    ("alternet18", 32): ([32, 16, 8, 4], [33, 18, 10, 5]),
    ("vgg16", 32): ([32, 16, 8, 4, 2], [33, 17, 9, 5, 3]),
    ("prevgg11", 32): ([32, 16, 8, 4, 2], [33, 17, 9, 5, 3]),
    ("alexnet", 32): ([16, 8, 4], [17, 9, 5]),
}
"""Sides of the maps that leave the stages, without smoothing and with the published one (its k = 2 blur grows them)."""


@pytest.mark.parametrize(("model", "side"), SIDES)
def test_maps_have_the_published_sizes(model: str, side: int) -> None:
    for smoothing, expected in zip((False, True), SIDES[model, side], strict=True):
        network, sizes = built(model, channels=2, smoothing=smoothing, stem=side == 224), []
        for name, module in network.named_children():
            if name.startswith("stage"):
                module.register_forward_hook(lambda _, __, out, sizes=sizes: sizes.append(tuple(out.shape[-2:])))
        with torch.no_grad():
            network(random_input(side, batch=1))
        assert sizes == [(s, s) for s in expected]


def test_smoothing_can_end_other_stages_and_be_of_another_kind() -> None:
    network = on_meta("preresnet18", 10, smoothing=True, smoothing_places=(2, 4), prob="relu6", blur=3, padding="same")
    layers = {name: m for name, m in network.named_modules() if isinstance(m, SpatialSmoothing)}
    assert list(layers) == ["stage2.smooth", "stage4.smooth"]
    assert all((m.prob.name, m.blur.size, m.blur.padding) == ("relu6", 3, "same") for m in layers.values())


PRODUCERS = {"alexnet": nn.Conv2d, "vgg11": nn.ReLU, "prevgg11": nn.Conv2d} | dict.fromkeys(
    ("resnet18", "resnet50", "resnext50", "preresnet18", "preresnet50", "alternet50"), nn.ReLU
)
"""What MC dropout comes after: the activation, in pre-activation VGG the convolution (AlexNet's ReLU is a function)."""
DROPOUTS = {"alexnet": 5, "vgg11": 8, "prevgg11": 8, "resnet18": 8, "preresnet18": 8, "alternet50": 17 - 4}


@torch.no_grad()
@pytest.mark.parametrize("model", PRODUCERS)
def test_dropout_sits_at_the_published_places(model: str) -> None:
    network, consumers = built(model, channels=16, dropout=0.5), []
    made: dict[int, tuple[nn.Module, Tensor]] = {}
    dropped: dict[int, tuple[Tensor, Tensor]] = {}

    def leave(module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        if id(inputs[0]) in dropped:
            consumers.append(type(module))
        if isinstance(module, Dropout):
            assert type(made[id(inputs[0])][0]) is PRODUCERS[model]
            assert model == "prevgg11" or inputs[0].min() >= 0
            dropped[id(out)] = (out, inputs[0])
        made[id(out)] = (module, out)

    for module in network.modules():
        if not any(module.children()):
            module.register_forward_hook(leave)
    network(random_input(32))
    assert len(dropped) == DROPOUTS.get(model, 16)
    if model.startswith(("res", "preres", "alternet")):
        assert consumers == [nn.Conv2d] * len(dropped)  # the last convolution of the branch
