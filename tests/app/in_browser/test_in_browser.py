"""The folder of `steadyseg export --target web`: what is in it, what it computes, and what is refused."""

import gzip
import hashlib
import json
import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import numpy as np
import onnx
import pytest
from made.browser_parity import first_graph
from made.local_server import send, serving, without_proxy
from refusals import refusal

from steadyseg.app.cli import main
from steadyseg.app.in_browser import runtime
from steadyseg.app.in_browser.site import WEB
from steadyseg.core.system import fetching
from steadyseg.export.file.onnx_file import check_onnx
from steadyseg.export.file.sessions import session_runner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


def test_the_folder_is_whole(site: Path) -> None:
    """Every file of the manifest is there with its hash, every script and licence is beside."""
    manifest = json.loads((site / "manifest.json").read_text())
    parts = [manifest["runtime"][name] for name in ("wasm", "webgpu")]
    files = [manifest["sample"], *(part[kind] for part in parts for kind in ("entry", "glue", "wasm"))]
    files += [method["file"] for method in manifest["methods"]]
    for file in files:
        data = (site / file["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
    assert [method["mode"] for method in manifest["methods"]] == ["vq-dnn", "dnn"]  # the network has no dropout
    assert [method["reference_scores"] for method in manifest["methods"]] == [
        20,
        0,
    ]  # held-out frames of the conftest's network
    assert [method["expected"] for method in manifest["methods"]] == [True, False]
    assert manifest["licence"] == "free to test" and "MIT" in (site / "runtime-1.30.0/LICENSE").read_text()
    assert all((site / path.name).read_bytes() == path.read_bytes() for path in WEB.iterdir())


def test_its_graphs_take_frames_of_one_size_and_resize_no_picture(site: Path) -> None:
    """WebGPU has no antialiased Resize, which pictures need; maps are enlarged without."""
    for path in (site / "models").iterdir():
        graph = check_onnx(gzip.decompress(path.read_bytes()), path).model.graph
        sizes = [size.dim_value for size in graph.input[0].type.tensor_type.shape.dim]
        assert sizes == [1, 96, 128, 3]
        enlargements = [node for node in graph.node if node.op_type == "Resize"]
        assert not any(one.name == "antialias" and one.i for node in enlargements for one in node.attribute)


def test_the_runtime_is_fetched_once_and_held_to_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that first breaks, then sends something else, then the package."""
    without_proxy(monkeypatch)
    monkeypatch.setattr(fetching, "PAUSES_S", (0.0, 0.0))
    package, asked = b"a package " * 1000, list[str]()
    monkeypatch.setattr(runtime, "BYTES", len(package))
    monkeypatch.setattr(runtime, "SHA256", hashlib.sha256(package).hexdigest())

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, package if len(asked) == 3 else b"a login page", length=99 if len(asked) == 1 else None)
        handler.close_connection = True

    kept = tmp_path / "cache" / runtime.NAME
    with serving(answer, Event()) as address:
        assert runtime.cached_package(kept, f"{address}/{runtime.NAME}") == package
        assert runtime.cached_package(kept, f"{address}/{runtime.NAME}") == package  # from the disk
        assert len(asked) == 3
        for size in (7, runtime.BYTES):
            kept.write_bytes(b"damaged"[:size])
            os.truncate(kept, size)
            said = refusal(runtime.cached_package, kept, f"{address}/{runtime.NAME}")
            assert "its hash differs" in said and f"copy {runtime.NAME} to {kept}" in said


@pytest.mark.long
def test_a_fixed_graph_computes_what_the_free_one_does(site: Path, tmp_path: Path) -> None:
    fixed = first_graph(site).model
    free = tmp_path / "free.onnx"
    flags = ["--stateful", "--motion", "off"]
    assert main(["export", str(site.parent / "plain.safetensors"), "-o", str(free), *flags]) == 0
    run, run_free = session_runner(fixed), session_runner(onnx.load(free))
    generator = np.random.default_rng(0)
    states = [value for value in fixed.graph.input if value.name.startswith("state_")]
    shapes = {value.name: [size.dim_value for size in value.type.tensor_type.shape.dim] for value in states}
    state = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    states = [dict(state), dict(state)]
    for number in range(3):
        frame = generator.integers(0, 256, (1, 96, 128, 3), dtype=np.uint8)
        inputs = {
            "frame": frame,
            "gap": np.full((1, 1), 1.0 + number, np.float32),
            "reset": np.zeros((1, 1), np.float32),
        }
        found = [one({**inputs, **states[index]}) for index, one in enumerate((run, run_free))]
        states = [{name: one[name.replace("_in", "_out")] for name in state} for one in found]
        assert all(np.array_equal(found[0][name], found[1][name]) for name in ("label", "confidence", "entropy"))
