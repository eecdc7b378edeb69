"""Smoothing and dropout put into real encoders: where they go, and that nothing else changes."""

import copy
import re
from functools import cache
from typing import Any

import pytest
import segmentation_models_pytorch as smp
import timm
import torch
from refusals import refusal
from torch import Tensor, nn

from steadyseg import subsampling_points
from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.insertion import InsertionPoint, PrependedLayer, insert_dropout, insert_smoothing
from steadyseg.core.smoothing import SpatialSmoothing

TABLE = """
resnet18: maxpool 64 layer2 64 layer3 128 layer4 256
vgg11_bn: features.3 64 features.7 128 features.14 256 features.21 512 features.28 512
mobilenet_v2: features.2 16- features.4 24- features.7 32- features.14 96-
densenet121: features.pool0 64 features.transition1.pool 128- features.transition2.pool 256- \
features.transition3.pool 512-
efficientnet-b0: _blocks.1 16- _blocks.3 24- _blocks.5 40- _blocks.11 112-
tu-mobilenetv3_small_100: model.blocks.0 16 model.blocks.1 16- model.blocks.2 24- model.blocks.4 48-
tu-regnetx_002: model.s1 32 model.s2 24 model.s3 56 model.s4 152
tu-convnext_atto: model.stages_1 40- model.stages_2 80- model.stages_3 160-
"""
"""Every pooling or strided stage but the stem, its channels, a minus where a linear map enters it."""
PLACES = {
    name: [(place, int(channels), not minus) for place, channels, minus in re.findall(r"(\S+) (\d+)(-?)", words)]
    for name, words in re.findall(r"(\S+): (.*)", TABLE)
}
FEW = ("resnet18", "vgg11_bn", "tu-mobilenetv3_small_100", "tu-convnext_atto")
"""Poolings and strides, activated maps and linear maps, and a stem of two levels."""
FIRST_CHANGED = {"vgg11_bn": 1, "tu-convnext_atto": 3}
"""The first stage output after a place: 0 is the image; ConvNeXt's stem takes two levels."""
SIZE = (97, 131)
"""Odd, so that a map after a place has an uneven half."""


@cache
def bare(name: str) -> nn.Module:
    torch.manual_seed(0)
    return smp.encoders.get_encoder(name, weights=None).eval()  # type: ignore[no-any-return]


@cache
def outputs_of_bare(name: str) -> list[Tensor]:
    return run(bare(name), picture(SIZE))


def picture(size: tuple[int, int]) -> Tensor:
    return torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(1))


def run(network: nn.Module, x: Tensor) -> list[Tensor]:
    with torch.no_grad():
        return list(network(x))


def list_inserted(network: nn.Module) -> list[PrependedLayer]:
    return [module for module in network.modules() if isinstance(module, PrependedLayer)]


def first_changed(name: str) -> int:
    return FIRST_CHANGED.get(name, 2)


def equal(a: list[Tensor], b: list[Tensor]) -> list[bool]:
    return [torch.equal(x, y) for x, y in zip(a, b, strict=True)]


def hooked(network: nn.Module, places: list[tuple[str, int, bool]]) -> nn.Module:
    """The same by hand: a hook that smooths what enters the module; a linear map gets no ReLU."""
    network = copy.deepcopy(network)
    for name, _, activated in places:
        smooth = SpatialSmoothing("tanh" if activated else "signed-tanh", 2, "same")
        network.get_submodule(name).register_forward_pre_hook(lambda _, x, smooth=smooth: (smooth(x[0]), *x[1:]))
    return network


@pytest.mark.parametrize("name", PLACES)
def test_the_places_are_the_subsampling_modules(name: str) -> None:
    network = copy.deepcopy(bare(name))
    expected = [InsertionPoint(*place) for place in PLACES[name]]
    assert subsampling_points(network) == expected
    assert insert_smoothing(network) == expected
    assert len(list_inserted(network)) == len(expected)


@pytest.mark.parametrize("name", FEW)
def test_what_enters_the_places_is_smoothed_and_nothing_else_happens(name: str) -> None:
    network, expected = copy.deepcopy(bare(name)), outputs_of_bare(name)
    insert_smoothing(network)
    smoothed = run(network, picture(SIZE))
    assert [x.shape for x in smoothed] == [x.shape for x in expected]
    assert all(equal(smoothed, run(hooked(bare(name), PLACES[name]), picture(SIZE))))
    first = first_changed(name)
    assert equal(smoothed, expected) == [i < first for i in range(len(expected))]  # a skip is taken before the place


def test_no_parameter_is_added_and_the_state_travels() -> None:
    name = "tu-mobilenetv3_small_100"
    network, x = copy.deepcopy(bare(name)), picture((64, 96))
    insert_smoothing(network)
    insert_dropout(network, 0.5)
    set_dropout_active(network, False)
    expected = run(network, x)
    tensors, before = list(network.state_dict().values()), list(bare(name).state_dict().values())
    assert len(tensors) == len(before) and all(equal(tensors, before))
    assert all(equal(run(copy.deepcopy(network), x), expected))
    torch.manual_seed(1)
    other = smp.encoders.get_encoder(name, weights=None).eval()
    insert_smoothing(other)
    insert_dropout(other, 0.5)
    set_dropout_active(other, False)
    assert not torch.equal(run(other, x)[-1], expected[-1])
    other.load_state_dict(network.state_dict())
    assert all(equal(run(other, x), expected))


@pytest.mark.parametrize("name", ["resnet18", "vgg11_bn"])
def test_dropout_draws_before_the_two_deepest_places_and_can_be_switched_off(name: str) -> None:
    network, x = copy.deepcopy(bare(name)), picture(SIZE)
    places = insert_dropout(network, 0.5)
    assert [place.name for place in places] == [place for place, _, _ in PLACES[name][-2:]]
    torch.manual_seed(2)
    first, second = run(network, x), run(network, x)
    untouched = first_changed(name) + len(PLACES[name]) - 2
    assert equal(first, second) == [i < untouched for i in range(len(first))]
    assert equal(first, outputs_of_bare(name)) == equal(first, second)
    set_dropout_active(network, False)
    assert all(equal(run(network, x), outputs_of_bare(name)))


@pytest.mark.parametrize(("deepest", "count"), [(1, 1), (3, 3), (9, 4)])
def test_dropout_goes_before_as_many_of_the_deepest_places_as_asked_for(deepest: int, count: int) -> None:
    network = copy.deepcopy(bare("resnet18"))
    names = [place.name for place in insert_dropout(network, 0.2, deepest)]
    assert names == ["maxpool", "layer2", "layer3", "layer4"][-count:]
    layers = [module for module in network.modules() if isinstance(module, Dropout)]
    assert len(layers) == count and all(layer.rate == 0.2 for layer in layers)
    assert all(isinstance(module.layer, Dropout) for module in list_inserted(network))


@pytest.mark.parametrize("options", [{}, {"features_only": True}], ids=str)
def test_classifiers_and_feature_extractors_of_timm(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    network = timm.create_model("mobilenetv3_small_050", pretrained=False, **options).eval()
    identity, smoothed = copy.deepcopy(network), copy.deepcopy(network)
    insert_smoothing(identity, "none", "none", 1)
    found = insert_smoothing(smoothed)
    assert [place.name for place in found] == ["blocks.0", "blocks.1", "blocks.2", "blocks.4"]
    by_hand = hooked(network, [(place.name, place.channels, place.activated) for place in found])
    x = picture(SIZE)
    expected, smooth_maps = run(network, x), run(smoothed, x)
    assert all(equal(run(identity, x), expected))
    assert all(equal(smooth_maps, run(by_hand, x)))
    assert not torch.equal(smooth_maps[-1], expected[-1])


def test_inference_mode_changes_nothing() -> None:
    with torch.inference_mode():
        network = timm.create_model("resnet18", num_classes=3)
        places = insert_smoothing(network, example=torch.rand(1, 3, 128, 128))
    assert places == insert_smoothing(timm.create_model("resnet18", num_classes=3))


@pytest.mark.parametrize("training", [True, False])
def test_the_network_comes_back_in_the_modes_it_had(training: bool) -> None:
    network = copy.deepcopy(bare("resnet18")).train(training)
    network.layer3.train(not training)  # type: ignore[union-attr]
    before = {name: module.training for name, module in network.named_modules()}
    statistics = copy.deepcopy(network.state_dict())
    subsampling_points(network)
    assert {name: module.training for name, module in network.named_modules()} == before
    assert all(equal(list(network.state_dict().values()), list(statistics.values())))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
    insert_dropout(network, 0.3)
    modes = [{part.training for part in network.get_submodule(name).modules()} for name in ("layer3", "layer4")]
    assert modes == [{not training}, {training}]  # what is inserted takes the mode of the module it precedes


@pytest.mark.parametrize(
    ("network", "says"),
    [
        (nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 4, 1)), "no module that halves"),
        (nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU()), "no module that halves"),  # only a stem
        (timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=128, depth=1), "no module that halves"),
        (timm.create_model("vit_tiny_patch16_224", pretrained=False, depth=1), "does not take a 1 x 3 x 128 x 128"),
        (nn.Sequential(nn.Conv2d(1, 8, 3), nn.MaxPool2d(2)), "does not take a 1 x 3 x 128 x 128"),
    ],
    ids=["1x1", "stem", "transformer", "transformer of one size", "grey"],
)
def test_networks_without_a_place_are_refused_in_one_line(network: nn.Module, says: str) -> None:
    network.train()
    assert says in refusal(insert_smoothing, network)
    assert network.training and not any(module._forward_hooks for module in network.modules())


@pytest.mark.parametrize(
    "wrong", [{"prob": "softplus"}, {"linear_prob": "softplus"}, {"size": 4}, {"padding": "valid"}]
)
def test_a_refused_setting_leaves_the_network_as_it_was(wrong: dict[str, Any]) -> None:
    network = copy.deepcopy(bare("resnet18"))  # it has no linear place, so nothing would ever use linear_prob
    with pytest.raises(InputError):
        insert_smoothing(network, **wrong)
    with pytest.raises(InputError):
        insert_dropout(network, 1.5)
    with pytest.raises(InputError):
        insert_dropout(network, 0.5, deepest=0)
    assert not list_inserted(network)


def test_an_example_of_the_caller_finds_the_places_of_a_grey_network() -> None:
    network = nn.Sequential(nn.Conv2d(1, 8, 3), nn.SiLU(), nn.MaxPool2d(2)).double()
    assert insert_smoothing(network, example=torch.rand(2, 1, 30, 50)) == [InsertionPoint("2", 8, True)]


class Chain(nn.Module):
    """Calls the named members one after the other, in another order than their registration."""

    def __init__(self, order: str, **members: nn.Module) -> None:
        super().__init__()
        self.members, self.order = nn.ModuleDict(members), order.split()

    def forward(self, x: Tensor) -> Tensor:
        for name in self.order:
            if name == "-1":
                x -= 1.0
            else:
                x = self.members[name](x)
        return x


def linear(channels: int = 4, stride: int = 1) -> nn.Conv2d:
    """Its channels in turn, copied into four of alternating signs: what leaves it has something below 0."""
    conv = nn.Conv2d(channels, 4, 1, stride=stride, bias=False)
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0])
    with torch.no_grad():
        conv.weight.zero_()[range(4), [i % channels for i in range(4)], 0, 0] = signs
    return conv


def test_places_come_in_the_order_of_computation() -> None:
    network = Chain("conv b a", conv=linear(3), a=nn.MaxPool2d(2), b=nn.AvgPool2d(2))
    assert [place.name for place in subsampling_points(network)] == ["members.b", "members.a"]


def test_an_activation_inside_the_place_is_not_one_before_it() -> None:
    """The ReLU works in place on the very tensor that entered, as pre-activation blocks do."""
    block = Chain("act down", act=nn.ReLU(inplace=True), down=linear(stride=2))
    assert subsampling_points(Chain("conv block", conv=linear(3), block=block)) == [
        InsertionPoint("members.block", 4, False)
    ]


def test_what_is_added_in_place_after_an_activation_makes_the_map_linear() -> None:
    members = {"conv": linear(3), "act": nn.SiLU(), "pool": nn.MaxPool2d(2)}
    assert subsampling_points(Chain("conv act pool", **members)) == [InsertionPoint("members.pool", 4, True)]
    assert subsampling_points(Chain("conv act -1 pool", **members)) == [InsertionPoint("members.pool", 4, False)]


def test_a_freed_activation_does_not_lend_its_identity_to_a_linear_map() -> None:
    """One activation is used often: the outputs of its later calls are freed and their addresses reused."""
    shared = {"conv": linear(3), "act": nn.SiLU(), "linear": linear(), "up": nn.Upsample(scale_factor=2)}
    maps = {f"linear{i}": linear() for i in range(8)}
    pools = {f"pool{i}": nn.MaxPool2d(2) for i in range(8)}
    # From the second time on nobody keeps what `act` returned when `linear` is done, so linear(i) may take its address
    # over.
    order = ["conv", *(f"act linear linear{i} pool{i} up" for i in range(8))]
    places = subsampling_points(Chain(" ".join(order), **shared, **maps, **pools))
    assert places == [InsertionPoint(f"members.pool{i}", 4, False) for i in range(8)]
