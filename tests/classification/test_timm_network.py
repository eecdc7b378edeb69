"""timm's networks by name: CNNs with smoothing and dropout, transformers with dropout after their dense layers."""

from typing import Any

import pytest
import timm
import torch
from made.classifier import random_input
from torch import nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.timm_network import TimmNetwork
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.dropout import Dropout, is_stochastic, set_dropout_active
from steadyseg.core.insertion import PrependedLayer, insert_smoothing
from steadyseg.core.predictors import MonteCarlo, SplitNetwork
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.core.stages import StageFeatures

VIT = "vit_tiny_patch16_224"


def built(name: str, **options: Any) -> TimmNetwork:
    torch.manual_seed(0)
    network = build_classifier(ClassifierOptions(f"timm:{name}", **options), 5)
    assert isinstance(network, TimmNetwork)
    return network.eval()


def library(name: str, **arguments: Any) -> nn.Module:
    torch.manual_seed(0)
    return timm.create_model(name, pretrained=False, num_classes=5, **arguments).eval()  # type: ignore[no-any-return]


def dropouts(network: nn.Module) -> list[str]:
    return [name.removeprefix("model.") for name, m in network.named_modules() if isinstance(m, Dropout)]


@torch.no_grad()
@pytest.mark.parametrize("name", ["resnet18", "mobilenetv2_050"])
def test_a_cnn_is_the_librarys_until_something_is_inserted(name: str) -> None:
    plain, x = built(name), random_input(64)
    assert torch.equal(plain(x), library(name)(x)) and not is_stochastic(plain)
    smoothed, by_hand = built(name, smoothing=True), library(name)
    insert_smoothing(by_hand)
    assert torch.equal(smoothed(x), by_hand(x)) and not torch.equal(smoothed(x), plain(x))
    assert sum(p.numel() for p in smoothed.parameters()) == sum(p.numel() for p in plain.parameters())


@torch.no_grad()
def test_a_cnn_draws_before_its_two_last_subsamplings() -> None:
    network, x = built("resnet18", dropout=0.3, smoothing=True), random_input(64)
    smooth = SpatialSmoothing  # in the modules' order: maxpool, layer2, then layer3 and layer4 with dropout before both
    layers = [type(module.layer) for module in network.modules() if isinstance(module, PrependedLayer)]
    assert layers == [smooth, smooth, Dropout, smooth, Dropout, smooth]
    assert dropouts(network) == ["layer3.layer", "layer4.layer"]
    first = network(x)
    assert isinstance(network, SplitNetwork) and not torch.equal(network(x), first)
    assert MonteCarlo(network, 3)(x).disagreement.max() > 1e-6  # by prefix and suffix
    set_dropout_active(network, False)
    assert torch.equal(network(x), built("resnet18", smoothing=True)(x))
    assert torch.equal(network.suffix(network.prefix(x)), network(x))


def test_a_map_without_an_activation_keeps_its_negative_half() -> None:
    """Every stage of MobileNetV2 ends without one, no stage of a ResNet does."""
    for prob, linear in (("relu6", "signed-tanh"), ("none", "none"), ("constant", "constant")):
        for name, expected in (("mobilenetv2_050", linear), ("resnet18", prob)):
            network = built(name, smoothing=True, prob=prob, blur=3)
            layers = [m for m in network.modules() if isinstance(m, SpatialSmoothing)]
            assert {(m.prob.name, m.blur.size, m.blur.padding) for m in layers} == {(expected, 3, "same")}


@torch.no_grad()
def test_a_vision_transformer_draws_after_every_dense_layer_but_the_attentions() -> None:
    network, x = built(VIT, dropout=0.25, img_size=32, patch_size=4), random_input(32)
    expected = ["pos_drop"]
    for i in range(12):
        expected += [f"blocks.{i}.attn.proj_drop", f"blocks.{i}.mlp.drop1", f"blocks.{i}.mlp.drop2"]
    assert dropouts(network) == expected
    assert all(m.rate == 0.25 for m in network.modules() if isinstance(m, Dropout))
    first = network(x)
    assert not torch.equal(network(x), first)  # on in eval
    set_dropout_active(network, False)
    assert network.model.pos_embed.shape == (1, 8**2 + 1, 192)
    assert torch.equal(network(x), library(VIT, img_size=32, patch_size=4)(x))


@torch.no_grad()
def test_the_masks_of_a_vision_transformer_are_those_the_library_would_draw() -> None:
    """Ones for all masks but one of zeros after the attention's projection: as if that projection gave nothing."""
    network, x = built(VIT, dropout=0.5, img_size=32, patch_size=4), random_input(32)
    by_hand: Any = library(VIT, img_size=32, patch_size=4)
    for name, module in network.named_modules():
        if isinstance(module, Dropout):
            value = 0.0 if name.endswith("blocks.3.attn.proj_drop") else 1.0
            module.masks = [torch.tensor(value)]
    nn.init.zeros_(by_hand.blocks[3].attn.proj.weight)
    nn.init.zeros_(by_hand.blocks[3].attn.proj.bias)
    torch.testing.assert_close(network(x), by_hand(x))


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [("swin_tiny_patch4_window7_224", {"img_size": 32, "patch_size": 1}, 36), ("mixer_s32_224", {}, 32)],
)
def test_other_networks_of_tokens_draw_too(name: str, options: dict[str, Any], count: int) -> None:
    with torch.device("meta"):  # no weight is drawn
        assert len(dropouts(built(name, dropout=0.1, **options))) == count


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "options", "last", "shape"),
    [
        ("resnet18", {}, "layer4", (2, 512, 2, 2)),
        (VIT, {"img_size": 64}, "blocks.11", (2, 192, 17, 1)),
        ("swin_tiny_patch4_window7_224", {}, "layers.3", (2, 768, 7, 7)),
    ],
)
def test_stages_are_what_the_library_lists(name, options, last, shape):
    """Maps, tokens, and maps whose channels come last."""
    network = built(name, **options)
    taps = StageFeatures(network, (last,))
    network(random_input(network.side or 64))
    (features,) = taps.take()
    assert features.shape == shape and list(network.named_stages())[-1] == last


def test_stochastic_depth_is_the_librarys() -> None:
    network = built("resnet18", stochastic_depth=0.3)
    rates = [m.drop_prob for m in network.modules() if type(m).__name__ == "DropPath"]
    assert max(rates) == pytest.approx(0.3) and len(rates) == 7


def test_building_leaves_the_network_in_training_mode_and_no_statistic_changed() -> None:
    vit = ClassifierOptions(f"timm:{VIT}", img_size=32, patch_size=16)
    networks = [build_classifier(one, 5) for one in (ClassifierOptions("timm:resnet18", smoothing=True), vit)]
    network = networks[0]
    assert all(module.training for one in networks for module in one.modules())
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    assert norms and all(not m.running_mean.any() for m in norms if m.running_mean is not None)
