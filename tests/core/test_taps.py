"""Features are read where a network names its stages."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import nn

from steadyseg.core.stages import StageFeatures, named_stages
from steadyseg.seg.networks.smp import SmpNetwork
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import SmpOptions, UNetOptions
from tests.refusals import refusal


def test_stages_of_our_unet_have_the_published_sizes() -> None:
    network = UNet(3, UNetOptions(channels=4, depth=3, dropout=0, dropout_places=())).eval()
    taps = StageFeatures(network, ["enc1", "enc3", "dec5"])
    with torch.no_grad():
        network(torch.zeros(1, 3, 16, 24))
    assert [tuple(found.shape) for found in taps.take()] == [(1, 4, 16, 24), (1, 16, 4, 6), (1, 4, 16, 24)]


@pytest.mark.parametrize("architecture", ["Unet", "FPN", "DeepLabV3Plus"])
def test_any_smp_network_names_encoder_and_decoder(architecture: str) -> None:
    network = SmpNetwork(3, SmpOptions(architecture=architecture, encoder="resnet18", encoder_smoothing=False)).eval()
    names = list(named_stages(network))
    assert {"enc1", "enc5", "decoder"} <= set(names) and ("dec1" in names) == (architecture == "Unet")
    taps = StageFeatures(network, names)
    with torch.no_grad():
        network(torch.zeros(1, 3, 64, 64))
    assert all(found.ndim == 4 and len(found) == 1 for found in taps.take())


def test_a_network_without_names_is_refused_and_taps_can_be_removed() -> None:
    assert "names no stages" in refusal(named_stages, nn.Linear(2, 2))
    network = UNet(3, UNetOptions(channels=4, depth=2, dropout=0, dropout_places=()))
    StageFeatures(network, ["dec3"]).remove()
    assert not any(module._forward_hooks for module in network.modules())


@pytest.mark.parametrize(
    "network",
    [
        lambda: UNet(3, UNetOptions(channels=4, depth=2, dropout_places=())),
        lambda: SmpNetwork(3, SmpOptions(encoder="resnet18")),
    ],
)
def test_a_network_that_is_read_is_freed_without_the_garbage_collector(network: Callable[[], nn.Module]) -> None:
    made = network()
    gone, reader = weakref.ref(named_stages(made)["enc1"].module), StageFeatures(made, ["enc1"])
    gc.collect()
    gc.disable()
    try:
        del made, reader
        assert gone() is None
    finally:
        gc.enable()
