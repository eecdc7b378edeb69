"""Networks with a unit removed, against a computation by hand; afterwards they are as before."""

import timm
import torch
from made.classifier import random_input

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import UNetOptions
from steadyseg.studies.analysis.measures.features import layout_of, trace
from steadyseg.studies.analysis.measures.lesion import can_be_removed, removed, weighted
from steadyseg.studies.analysis.measures.units import find_units, list_units


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
