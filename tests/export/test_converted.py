"""Converted networks on disk: the same maps, found by all that they depend on, and never trusted when damaged."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from steadyseg.export.run import converted
from steadyseg.export.run.converted import kept, key
from steadyseg.export.run.networks import openvino_model

EXAMPLE = (torch.zeros(1, 3, 8, 8),)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEADYSEG_CACHE", str(tmp_path))
    return tmp_path / converted.FOLDER


def network(weight: float = 1.0, stride: int = 1) -> nn.Module:
    layer = nn.Conv2d(3, 2, 3, stride)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(weight)
    return layer.eval()


def outputs(model: object) -> np.ndarray:
    import openvino

    request = openvino.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    return np.asarray(request.infer([np.linspace(0, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)])[0])


@pytest.mark.slow
def test_a_network_is_converted_once_and_computes_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = outputs(openvino_model(network(), EXAMPLE))
    monkeypatch.setattr(torch.export, "export", None)  # a second conversion fails
    assert (outputs(openvino_model(network(), EXAMPLE)) == first).all() and len([*cache.iterdir()]) == 1


def test_another_weight_attribute_size_or_code_is_another_network(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key(network(), EXAMPLE)
    assert first == key(network(), EXAMPLE)
    others = [network(weight=1.5), network(stride=2), nn.Sequential(network())]
    found = [first, *(key(other, EXAMPLE) for other in others), key(network(), (torch.zeros(1, 3, 8, 9),))]
    monkeypatch.setattr(converted, "code_digest", lambda: b"changed")
    assert len({*found, key(network(), EXAMPLE)}) == 6


@pytest.mark.slow
def test_another_process_finds_the_networks_of_this_one() -> None:
    """Also the hooks of a network with novelty statistics; the order of a set depends on the seed of hashes."""
    code = (
        "import torch\nfrom made.methods import method\nfrom steadyseg.app.executors import FrameToLogits\n"
        "from steadyseg.export.run.converted import key\nfrom steadyseg.seg.of_model import streaming_module\n"
        "from steadyseg.seg.pretrained import read_segmenter\n"
        "for name in ('street-tiny', 'camvid-mobile'):\n"
        "    module = streaming_module(read_segmenter(name), method('vq-dnn'))\n"
        "    print(key(FrameToLogits(module), [torch.zeros(1, 96, 128, 3, dtype=torch.uint8)]))"
    )
    tests = str(Path(__file__).parents[1])
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": tests, "PYTHONHASHSEED": str(seed)},
            cwd=Path(tests).parent,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(found) == 1 and len(found.pop().split()) == 2


@pytest.mark.slow
def test_a_damaged_file_is_made_again_and_a_cache_that_cannot_be_written_is_done_without(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = outputs(openvino_model(network(), EXAMPLE))
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        assert (outputs(openvino_model(network(), EXAMPLE)) == wanted).all()
        assert (outputs(converted.unpack(path.read_bytes())) == wanted).all()
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("STEADYSEG_CACHE", str(blocked))
    assert (outputs(openvino_model(network(), EXAMPLE)) == wanted).all()


def test_the_least_recently_used_files_make_room(cache: Path) -> None:
    cache.mkdir()
    for number in range(converted.MAX_KEPT + 2):
        (cache / f"{number}").write_bytes(b"")
        os.utime(cache / f"{number}", (number, number))
    converted.drop_old(cache)
    assert {path.name for path in cache.iterdir()} == {str(number) for number in range(2, converted.MAX_KEPT + 2)}


class Own(nn.Module):
    """A user's network: its code may change without a change of its class, attributes or weights."""


def test_a_module_that_cannot_be_told_apart_is_converted_every_time(cache: Path) -> None:
    module = network()
    module.held = (one for one in ())  # type: ignore[assignment]
    for unknown in (module, Own(), nn.Sequential(Own())):
        assert kept(unknown, EXAMPLE, lambda: "converted") == "converted" and not cache.exists()
