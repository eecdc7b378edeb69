"""The parts of a network: their names and maps, networks without one of them, and planes around the weights."""

import pytest
import timm
import torch
from made.classifier import random_input
from refusals import refusal
from torch import nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.insertion import insert_smoothing
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import SmpOptions, UNetOptions
from steadyseg.studies.analysis.maps import depths
from steadyseg.studies.analysis.measures.features import as_maps, layout_of, trace, watch_maps
from steadyseg.studies.analysis.measures.landscape import (
    grid,
    moved,
    moving_weights,
    random_direction,
    squared_norm,
    sum_of_norms,
)
from steadyseg.studies.analysis.measures.lesion import can_be_removed, removed, weighted
from steadyseg.studies.analysis.measures.units import find_units, list_units


def names(network: nn.Module, kind: str = "block") -> list[str]:
    return [unit.name for unit in list_units(network, kind)]  # type: ignore[arg-type]


def test_our_classifiers_have_a_stem_their_residual_blocks_and_the_smoothing_between() -> None:
    network = build_classifier(ClassifierOptions(channels=4, smoothing=True), 5)
    assert names(network) == ["stem", *(f"stage{s}.{b}" for s in range(1, 5) for b in range(2)), "head"]
    assert names(network, "smoothing") == [f"stage{s}.smooth" for s in range(1, 5)]
    assert names(network, "conv")[:3] == ["stem.0", "stage1.0.first.0", "stage1.0.last.0"]
    assert not names(network, "attention")
    alternet = build_classifier(ClassifierOptions(network="alternet18", channels=4), 5)
    assert "stage2.1" in names(alternet) and names(alternet, "attention")[0] == "stage2.1.branch.4"
    assert len(names(build_classifier(ClassifierOptions(network="vgg11", channels=4, head="gap"), 5))) == 9


def test_segmentation_networks_have_stages_and_decoder_blocks() -> None:
    unet = build_network("unet", UNetOptions(channels=4, smoothing=True), 3)
    assert names(unet) == [f"stages.{i}" for i in range(9)] and len(names(unet, "smoothing")) == 4
    smp = build_network("smp", SmpOptions(encoder="resnet18", encoder_weights=None, encoder_smoothing=True), 3)
    found = names(smp)
    assert "model.decoder.blocks.0" in found and len([name for name in found if ".encoder." in name]) == 8
    assert len(names(smp, "smoothing")) >= 3


@pytest.mark.parametrize(
    ("name", "blocks", "kinds", "side"),
    [
        ("resnet18", 8, (), 8),
        ("vit_tiny_patch16_224", 13, ("attention", "mlp"), 14),
        ("swin_tiny_patch4_window7_224", 17, ("attention", "mlp"), 56),
        ("convnext_atto", 17, ("mlp",), 8),
        ("mobilenetv3_small_050", 12, (), 8),
    ],
)
def test_timms_networks_tell_their_blocks_and_maps(name: str, blocks: int, kinds: tuple[str, ...], side: int) -> None:
    network = timm.create_model(name, num_classes=5).eval()
    units = list_units(network, "block")
    assert abs(len(units) - blocks) <= 2, [unit.name for unit in units]
    assert all(list_units(network, kind) for kind in kinds)  # type: ignore[arg-type]
    shapes = {}
    size = 224 if "224" in name else 32
    with (
        torch.no_grad(),
        watch_maps(units, lambda unit, _, maps: shapes.update({unit.name: maps.shape}), layout_of(network)),
    ):
        network(random_input(size, 1))
    assert max(shape[-1] for shape in shapes.values()) == side and all(s[-1] == s[-2] for s in shapes.values())


def test_a_network_without_blocks_has_its_layers() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 1), nn.Flatten(), nn.Linear(5, 2))
    assert names(network) == ["0", "2", "4"]


def test_what_enters_and_leaves_a_smoothing_layer_is_seen() -> None:
    network = timm.create_model("resnet18", num_classes=5).eval()
    insert_smoothing(network)
    seen = []
    units = list_units(network, "smoothing")
    with torch.no_grad(), watch_maps(units, lambda unit, a, b: seen.append((unit.name, a, b)), layout_of(network)):
        network(random_input(64, 1))
    assert len(seen) == len(units) > 2
    for name, before, after in seen:
        torch.testing.assert_close(network.get_submodule(name)(before), after)


def test_tokens_become_squares_without_the_class_token() -> None:
    tokens = torch.arange(10.0).view(1, 10, 1)
    assert as_maps(tokens).flatten().tolist() == list(range(1, 10))  # type: ignore[union-attr]
    assert as_maps(tokens[:, :7]) is None and as_maps(torch.zeros(2, 5)) is None


def test_what_leaves_a_smoothing_layer_lies_half_way_to_the_next_block() -> None:
    assert depths(["", "in", "out", "", ""]) == [0.0, 0.0, 0.25, 0.5, 1.0]
    assert depths([""]) == [0.0]


@torch.no_grad()
def test_every_unit_of_every_network_can_be_removed_and_comes_back() -> None:
    torch.manual_seed(0)
    networks = [
        build_classifier(ClassifierOptions(channels=4, smoothing=True), 3).eval(),
        timm.create_model("vit_tiny_patch16_224", num_classes=3, depth=2).eval(),
        build_network("unet", UNetOptions(channels=4, smoothing=True, dropout=0.0), 3).eval(),
    ]
    for network, side in zip(networks, (32, 224, 50), strict=True):
        pictures = random_input(side)
        before, changed = network(pictures), []
        for kind in ("block", "conv", "attention", "mlp", "smoothing"):
            for one in trace(network, pictures[:1], list_units(network, kind), layout_of(network)):  # type: ignore[arg-type]
                if can_be_removed(one):
                    with removed(one.unit):
                        after = network(pictures)
                    assert after.shape == before.shape, one.unit.name
                    changed.append(not torch.equal(after, before))
        assert torch.equal(network(pictures), before)
        assert sum(changed) > 0.7 * len(changed) > 3  # of an untrained U-Net some deep parts do not reach the logits


@torch.no_grad()
def test_without_its_last_convolution_a_residual_block_is_what_its_branch_gives_for_zero() -> None:
    network = build_classifier(ClassifierOptions(channels=4), 3).eval()
    block = network.get_submodule("stage2.0")
    x = torch.rand(2, 4, 8, 8)
    (unit,) = find_units(network, ["stage2.0.first.0"], "net")
    norm = block.get_submodule("first.1")
    with removed(unit):
        found = block(x)
    zero = torch.relu(norm(torch.zeros(2, 8, 4, 4)))
    torch.testing.assert_close(
        found, torch.relu(block.get_submodule("shortcut")(x) + block.get_submodule("last")(zero))
    )


@torch.no_grad()
def test_a_smoothing_layer_goes_from_whole_to_none_by_its_weight() -> None:
    network = build_classifier(ClassifierOptions(channels=4, smoothing=True), 3).eval()
    (unit,) = find_units(network, ["stage1.smooth"], "net")
    x = torch.rand(1, 4, 6, 6)
    whole = unit.module(x)
    padded = torch.nn.functional.pad(x, (0, 1, 0, 1))
    for weight in (0.0, 0.25, 1.0):
        with weighted(unit, weight):
            torch.testing.assert_close(unit.module(x), weight * whole + (1 - weight) * padded)
    with removed(unit):
        assert torch.equal(unit.module(x), padded)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return build_classifier(ClassifierOptions(channels=4, smoothing=True), 3).eval()


def test_directions_have_the_norms_of_the_weights_by_their_rule() -> None:
    weights = moving_weights(network())
    assert "stem.0.weight" in weights and not any("1.bias" in name or "running" in name for name in weights)
    for rule, over in (("filter", (1, 2, 3)), ("axis0", (0,))):
        direction = random_direction(weights, rule, seed=5)  # type: ignore[arg-type]
        name = "stage1.0.first.0.weight"
        ours, theirs = (torch.linalg.vector_norm(x[name], dim=over) for x in (direction, weights))
        torch.testing.assert_close(ours, theirs)
        again, other = (random_direction(weights, rule, seed)[name] for seed in (5, 6))  # type: ignore[arg-type]
        assert torch.equal(again, direction[name]) and not torch.equal(other, again)
    zero = random_direction({"w": torch.zeros(3, 2)}, "filter", 0)["w"]
    assert torch.equal(zero, torch.zeros(3, 2))


def test_the_centre_is_the_network_and_it_comes_back() -> None:
    net, pictures = network(), random_input()
    weights = moving_weights(net)
    ways = [random_direction(weights, "filter", seed) for seed in (1, 2)]
    with torch.no_grad():
        before = net(pictures)
        with moved(net, weights, [(0.0, ways[0]), (0.0, ways[1])]):
            assert torch.equal(net(pictures), before)
        with moved(net, weights, [(0.5, ways[0]), (-0.25, ways[1])]):
            name = "head.2.weight"
            expected = weights[name] + 0.5 * ways[0][name] - 0.25 * ways[1][name]
            torch.testing.assert_close(dict(net.named_parameters())[name].data, expected)
            assert not torch.allclose(net(pictures), before)
        assert torch.equal(net(pictures), before)


def test_both_norms_of_the_weights() -> None:
    layer = torch.nn.Linear(2, 1)
    layer.weight.data, layer.bias.data = torch.tensor([[3.0, 4.0]]), torch.tensor([2.0])
    assert squared_norm(layer) == 29.0 and sum_of_norms(layer) == 7.0


def test_the_grid_has_a_middle() -> None:
    assert grid(5, 1.0) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert "odd number of points" in refusal(grid, 20, 1.0)
