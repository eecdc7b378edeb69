"""segmentation-models-pytorch networks as MC-dropout networks, from random weights and without a connection."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import segmentation_models_pytorch as smp_library
import torch
from made.methods import opened_by_torch
from torch import Tensor, nn

from steadyseg.core.classes import CAMVID
from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.predictors import MonteCarlo, SplitNetwork
from steadyseg.seg.networks.smp import SmpNetwork
from steadyseg.seg.options import SmpOptions

ARCHITECTURES = ("Unet", "UnetPlusPlus", "FPN")
"""Unet has a list of decoder blocks; other networks get one dropout layer after the decoder."""


def network(architecture: str = "Unet", dropout: float = 0.3) -> SmpNetwork:
    torch.manual_seed(0)
    return SmpNetwork(5, SmpOptions(architecture, decoder_dropout=dropout)).eval()


def picture(height: int = 45, width: int = 75) -> Tensor:
    return torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(1))


def dropouts(module: nn.Module) -> list[Dropout]:
    return [m for m in module.modules() if isinstance(m, Dropout)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_odd_sizes_come_back_passes_differ_and_prefix_then_suffix_is_the_network(architecture: str) -> None:
    smp, x = network(architecture), picture()
    assert isinstance(smp, SplitNetwork)
    with torch.no_grad():
        torch.manual_seed(4)
        first, second = smp(x), smp(x)
        torch.manual_seed(4)
        parts = smp.suffix(smp.prefix(x))
        set_dropout_active(smp, False)
        quiet, again = smp(x), smp(x)
    assert first.shape == (1, 5, 45, 75)
    assert not torch.equal(first, second) and torch.equal(quiet, again)
    assert torch.equal(first, parts)


def test_every_decoder_block_but_the_last_has_its_own_dropout() -> None:
    smp, shapes = network(), []
    blocks = list(smp.model.decoder.blocks)
    assert len(dropouts(smp)) == 4 and [len(dropouts(block)) for block in blocks] == [1, 1, 1, 1, 0]
    for block in blocks[:-1]:
        block.register_forward_hook(lambda _, inputs, out: shapes.append((out == 0).float().mean().item()))
    with torch.no_grad():
        smp(picture(64, 64))
        dropped = list(shapes)
        shapes.clear()
        set_dropout_active(smp, False)
        smp(picture(64, 64))
    # ReLU leaves a share z of zeros; dropout at 0.3 makes it z + 0.3 (1 - z)
    assert all(d > q + 0.2 * (1 - q) for d, q in zip(dropped, shapes, strict=True))


def test_networks_without_a_list_of_blocks_get_one_dropout_after_the_decoder() -> None:
    smp = network("FPN")
    assert len(dropouts(smp)) == 1 and dropouts(smp.model.decoder) == dropouts(smp)


@pytest.mark.parametrize("encoder", ["resnet18", "tu-regnetx_002"])
def test_without_smoothing_and_dropout_it_is_the_library_s_unet_bit_by_bit(encoder: str) -> None:
    torch.manual_seed(0)
    library = smp_library.Unet(encoder, encoder_weights=None, classes=5).eval()
    options = SmpOptions(encoder=encoder, encoder_smoothing=False, decoder_dropout=0.0)
    plain = SmpNetwork(5, options).eval()
    smoothed = SmpNetwork(5, dataclasses.replace(options, encoder_smoothing=True)).eval()
    plain.model.load_state_dict(library.state_dict(), strict=True)
    assert network().state_dict().keys() == SmpNetwork(5, SmpOptions(decoder_dropout=0.0)).state_dict().keys()
    for own, theirs in zip(smoothed.parameters(), library.parameters(), strict=True):
        own.data.copy_(theirs)
    with torch.no_grad():
        for x in (picture(64, 96), picture(45, 75)):
            expected = library(x)
            assert torch.equal(plain(x), expected) and not torch.allclose(smoothed(x), expected, rtol=0, atol=1e-3)


def test_padding_for_a_decoder_that_needs_it_is_right_and_below() -> None:
    torch.manual_seed(0)
    smp, x = SmpNetwork(5, SmpOptions("UnetPlusPlus", decoder_dropout=0.0)).eval(), picture(45, 75)
    assert smp.model.requires_divisible_input_shape
    with torch.no_grad():
        assert torch.equal(smp(x), smp.model(torch.nn.functional.pad(x, (0, 21, 0, 19)))[..., :45, :75])


def test_a_head_at_half_size_says_one_vector_for_four_pixels() -> None:
    smp = SmpNetwork(5, SmpOptions(head_stride=2, decoder_channels=(64, 32, 24, 16, 8))).eval()
    assert len(smp.model.decoder.blocks) == 4 and len(dropouts(smp)) == 3
    for height, width in ((64, 96), (45, 75), (33, 64), (1, 2)):
        with torch.no_grad():
            assert smp(picture(height, width)).shape == (1, 5, -(-height // 2), -(-width // 2))


def test_a_head_at_half_size_reads_the_last_block_that_is_left() -> None:
    """Built by hand from the library's own parts: encoder, four of five decoder blocks, the new head."""
    torch.manual_seed(0)
    smp = SmpNetwork(5, SmpOptions(head_stride=2, encoder_smoothing=False, decoder_dropout=0.0)).eval()
    library = smp_library.Unet("resnet18", encoder_weights=None, classes=5).eval()
    library.encoder.load_state_dict(smp.model.encoder.state_dict())
    missing = library.decoder.load_state_dict(smp.model.decoder.state_dict(), strict=False)
    assert not missing.unexpected_keys and all(key.startswith("blocks.4.") for key in missing.missing_keys)
    entering: list[Tensor] = []
    library.decoder.blocks[4].register_forward_pre_hook(lambda _, args: entering.append(args[0]))
    with torch.no_grad():
        library(picture(64, 96))
        assert torch.equal(smp(picture(64, 96)), smp.model.segmentation_head(entering[0]))


def test_encoder_dropout_draws_in_the_suffix() -> None:
    torch.manual_seed(0)
    smp, x = SmpNetwork(5, SmpOptions(encoder_dropout=0.3, decoder_dropout=0.0)).eval(), picture()
    assert len(dropouts(smp.model.encoder)) == len(dropouts(smp)) == 2
    with torch.no_grad():
        shared = smp.prefix(x)
        assert not torch.equal(smp.suffix(shared), smp.suffix(shared))
        torch.manual_seed(4)
        whole = smp(x)
        torch.manual_seed(4)
        assert torch.equal(smp.suffix(smp.prefix(x)), whole)
        set_dropout_active(smp, False)
        quiet = SmpNetwork(5, SmpOptions(decoder_dropout=0.0)).eval()
        for own, theirs in zip(quiet.parameters(), smp.parameters(), strict=True):
            own.data.copy_(theirs)
        assert torch.equal(smp(x), quiet(x)) and not torch.equal(whole, quiet(x))


def test_the_encoder_runs_once_for_many_samples_until_it_draws_itself() -> None:
    smp, calls = SmpNetwork(5, SmpOptions(encoder_dropout=0.3)).eval(), []
    smp.model.encoder.conv1.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        MonteCarlo(smp, 4)(picture())
        assert len(calls) == 4
        for dropout in dropouts(smp.model.encoder):
            dropout.active = False
        MonteCarlo(smp, 4)(picture())
    assert len(calls) == 5


OFFLINE = """
import time
time.sleep = lambda seconds: None  # the hub's client pauses 23 s between its six tries
from steadyseg.core.errors import InputError
from steadyseg.seg.options import SmpOptions
from steadyseg.seg.networks.smp import SmpNetwork
try:
    SmpNetwork(5, SmpOptions(encoder_weights="imagenet"))
except InputError as error:
    print(error)
"""


@pytest.mark.long
def test_without_a_connection_pretrained_weights_are_one_line(tmp_path: Path) -> None:
    """A real client, an empty cache and a closed port."""
    environment = os.environ | {"HF_HOME": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = root
    done = subprocess.run([sys.executable, "-c", OFFLINE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert "imagenet weights of resnet18" in done.stdout and "encoder_weights=None" in done.stdout


def test_a_checkpoint_opens_without_fetching_the_weights_its_training_began_with(tmp_path, monkeypatch):
    def closed(*_: object, **__: object) -> None:
        raise OSError("no connection")

    monkeypatch.setattr("segmentation_models_pytorch.encoders.hf_hub_download", closed)
    options = dataclasses.asdict(SmpOptions(encoder_weights="imagenet"))
    meta = CheckpointMeta("smp", options, CAMVID, 64, 96, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))
    smp = SmpNetwork(11, SmpOptions())
    save_checkpoint(tmp_path / "model.safetensors", smp.state_dict(), meta)
    segmenter = opened_by_torch(tmp_path / "model.safetensors")
    loaded = segmenter.module.predictor.network.state_dict()  # type: ignore[union-attr]
    assert all(torch.equal(loaded[name], tensor) for name, tensor in smp.state_dict().items())
