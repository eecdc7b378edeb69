"""The graphs that ship: bytes of a fresh conversion, and runs in which torch cannot be imported."""

import dataclasses
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing.mutate import damage_json
from made.methods import method

from steadyseg.app.sources.open_source import open_source
from steadyseg.app.video.report import METRIC_KEYS
from steadyseg.core.dropout import is_stochastic
from steadyseg.core.errors import InputError
from steadyseg.core.method import Method, MethodOptions
from steadyseg.core.model.checkpoint import count_parameters
from steadyseg.core.picture_size import network_size
from steadyseg.core.segmenter import segment
from steadyseg.runtime.conversion import convert
from steadyseg.runtime.converted import pack, require_shapes, unpack
from steadyseg.runtime.label_metrics import LabelMetrics
from steadyseg.runtime.network_plan import NetworkPlan, StoredNetwork, head_stride, require_dropout
from steadyseg.runtime.networks import frame_network
from steadyseg.runtime.open_model import open_checkpoint, open_segmenter
from steadyseg.runtime.shipped_graphs import (
    INDEX,
    MAX_SMALL_BYTES,
    SMALL,
    SUFFIX,
    Recipe,
    ShippedGraphs,
    constants,
    graph_digest,
)
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.presets import PRESETS
from steadyseg.seg.pretrained import list_segmenters
from steadyseg.studies.harness.graphs import factors

PROJECT = Path(__file__).parents[2]
LONG = pytest.mark.long
PLANS = [
    ("street-tiny", "vq-dnn", "fp32", (720, 1280)),
    ("street-tiny", "vq-dnn", "fp32", (1080, 1080)),
    pytest.param("street-tiny", "bnn", "fp32", (480, 640), marks=LONG),
    pytest.param("road-realtime", "vq-dnn", "int8", (480, 640), marks=LONG),
    pytest.param("road-mobile", "vq-bnn", "fp32", (480, 640), marks=LONG),
    pytest.param("camvid-unet-s", "vq-dnn", "int8", (720, 1280), marks=LONG),
]
WITHOUT_TORCH = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision", "timm", "segmentation_models_pytorch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def stored(name: str, mode: str, precision: str) -> StoredNetwork:
    model = open_checkpoint(name)
    chosen = MethodOptions(mode=mode, samples=5 if mode == "bnn" else None).resolve(model.meta)  # type: ignore[arg-type]
    return StoredNetwork(model, chosen, precision)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "precision", "frame"), PLANS)
def test_a_shipped_graph_is_the_conversion_of_its_checkpoint(name, mode, precision, frame):
    network = stored(name, mode, precision)
    height, width = network_size(*frame, network.model.meta.height)
    shipped = ShippedGraphs(network.model.path, network.model.sha256).read(
        network.plan.name(height, width), network.model.arrays
    )
    assert shipped is not None
    fresh = unpack(pack(convert(network.module, height, width, network.plan.shared)))  # read from a file as well
    assert shipped.rates == fresh.rates and shipped.mask_shapes == fresh.mask_shapes
    picture = np.random.default_rng(0).integers(0, 256, (1, height, width, 3), np.uint8)
    ours, theirs = (list(frame_network(one, "fp32").passes(picture, 1)) for one in (shipped, fresh))
    np.testing.assert_array_equal(ours, theirs)


def test_every_included_network_ships_its_default_method_at_three_sizes() -> None:
    for name in list_segmenters():
        model = open_checkpoint(name)
        plan = NetworkPlan.of(model.meta, method("vq-dnn"), "fp32")
        graphs = ShippedGraphs(model.path, model.sha256)
        for frame in ((480, 640), (720, 1280), (1920, 1080)):
            assert plan.name(*network_size(*frame, model.meta.height)) in graphs, name
        assert not ShippedGraphs(model.path, "0" * 64), "graphs of other weights are not used"


NAME = "fp32 180x320"
Members = dict[str, bytes]


def exchange_tensors(members: Members, index: dict[str, Any]) -> None:
    """Exchanges the names of two tensors of one size, in the recipes of a graph with its digest."""
    graph = index["graphs"][NAME]
    ((file, recipes),) = graph["models"]
    tensors = open_checkpoint("street-tiny").arrays
    weights = constants([Recipe(*one) for one in recipes], tensors, members[SMALL])
    graph["digests"] = [graph_digest(members[file], weights, [NAME, graph["rates"], graph["shapes"]])]
    sizes = dict[int, list[Any]]()
    for recipe in recipes:
        if recipe[0] == "tensor" or recipe[0] == "scaled":
            sizes.setdefault(tensors[recipe[3]].size, []).append(recipe)
    one, other = next(each for each in sizes.values() if len(each) > 1)[:2]
    one[3], other[3] = other[3], one[3]


DAMAGE: dict[str, Callable[[Members, dict[str, Any]], object]] = {
    "exchanged": exchange_tensors,
    "of another method": lambda members, index: index["graphs"].update({NAME: index["graphs"]["fp32 draws 180x320"]}),
    "other rates": lambda members, index: index["graphs"][NAME].update(rates=[0.9]),
    "no small bytes": lambda members, index: members.pop(SMALL),
    "no XML": lambda members, index: members.update(
        {name: b"<net" for name in members if name.endswith(".xml")},
    ),
    "no digests of its graphs": lambda members, index: index["graphs"][NAME].pop("digests"),
    "too few digests": lambda members, index: index["graphs"][NAME].update(digests=[]),
    "endless constants": lambda members, index: index["graphs"][NAME]["models"][0][1].extend(
        [["bytes", 0, 12_000]] * 10**5
    ),
    "an unknown tensor": lambda members, index: index["graphs"][NAME]["models"][0].__setitem__(
        1, [["tensor", 0, 0, "gone"]]
    ),
    "other masks": lambda members, index: index["graphs"][NAME].update(shapes=[[1, 8, 8, 8]], rates=[0.5]),
    "no recipe": lambda members, index: index["graphs"][NAME].update(models=[["a", 1], 2]),
    "a large member": lambda members, index: members.update({SMALL: bytes(MAX_SMALL_BYTES + 1)}),
    "odd index": lambda members, index: index.update(graphs=[1]),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_graphs_count_as_absent(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = open_checkpoint("street-tiny")
    with zipfile.ZipFile(model.path.with_suffix(SUFFIX)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    index = json.loads(members[INDEX])
    index["checkpoint"] = model.sha256
    DAMAGE[kind](members, index)
    with zipfile.ZipFile(tmp_path / "a.graphs", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in (members | {INDEX: json.dumps(index).encode()}).items():
            archive.writestr(name, data)
    check = partial(require_shapes, height=180, width=320, classes=11)
    graphs = ShippedGraphs(tmp_path / "a.safetensors", model.sha256)
    assert not graphs or graphs.read(NAME, model.arrays, check) is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "a.graphs is damaged" in said and "converted instead" in said


def with_damaged_index(whole: bytes, dice: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    index = json.loads(members[INDEX])
    index["graphs"][NAME] = damage_json(index["graphs"][NAME], dice)
    with zipfile.ZipFile(written := io.BytesIO(), "w") as archive:
        for name, data in (members | {INDEX: json.dumps(index).encode()}).items():
            archive.writestr(name, data)
    return written.getvalue()


def test_what_changed_in_an_archive_gives_the_same_network_or_none(tmp_path: Path) -> None:
    model, drawn = open_checkpoint("street-tiny"), random.Random(0)
    whole, results = model.path.with_suffix(SUFFIX).read_bytes(), list[bool]()
    fresh = ShippedGraphs(model.path, model.sha256).read(NAME, model.arrays)
    assert fresh is not None
    for number in range(40):
        damaged, place = bytearray(whole), drawn.randrange(len(whole)) if number % 2 else -1 - drawn.randrange(2500)
        damaged[place] ^= 1 << drawn.randrange(8)
        cut = damaged if number % 10 else whole[:place]
        (tmp_path / "a.graphs").write_bytes(with_damaged_index(whole, drawn) if number >= 24 else cut)
        graphs = ShippedGraphs(tmp_path / "a.safetensors", model.sha256)
        found = graphs.read(NAME, model.arrays) if NAME in graphs else None
        results.append(found is None)
        assert found is None or pack(found) == pack(fresh)
    assert True in results and False in results


def run_without_torch(code: str, cache: Path) -> str:
    environment = {**os.environ, "STEADYSEG_CACHE": str(cache)}
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + code], capture_output=True, text=True, env=environment, cwd=PROJECT
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_the_included_networks_and_the_commands_that_run_them_need_no_torch(tmp_path: Path) -> None:
    code = """
import numpy as np
from steadyseg import Frame, MethodOptions, open_segmenter
for mode in ("vq-dnn", "vq-bnn", "bnn", "dnn"):
    segmenter = open_segmenter("road-mobile" if mode == "dnn" else "street-tiny", MethodOptions(mode=mode))
    for index in range(3):
        maps = segmenter.step(Frame(np.full((480, 640, 3), 80 * index, np.uint8), index, index / 25))
    print(maps.label.shape, segmenter.backend.split()[0])
from steadyseg.app.cli import main
main(["models"])
"""
    modules = ("video.command", "page.server", "scale.batch.command", "export.verify")
    code += "\n".join(f"import steadyseg.app.{one}" for one in modules)
    video = ["video", "street:7:3", "--model", "street-tiny", "-o", str(tmp_path / "video.mp4")]
    said = run_without_torch(f"{code}\nassert main({video}) == 0", tmp_path)
    assert said.count("(480, 640) openvino") == 4 and all(name in said for name in list_segmenters())
    assert "miou" in said, "labels are measured without torch too"


@pytest.mark.slow
def test_metrics_of_a_stream_equal_the_metrics_of_evaluations() -> None:
    segmenter = open_segmenter("street-tiny", keep_probs=True)
    ours, theirs = LabelMetrics(segmenter.classes), FrameMetrics.of(segmenter.classes)
    with open_source("street:7:5") as source:
        for frame, maps in segment(source, segmenter):
            again = dataclasses.replace(frame, discontinuity=frame.index == 2)
            ours.update(again, maps)
            theirs.update(again, maps)
    found, expected = ours.result(), theirs.result()
    counts = [[bin["count"] for bin in one["reliability"]] for one in (found, expected)]
    assert counts[0] == pytest.approx(counts[1], abs=5), "of 1.5 million pixels, enlarged with another rounding"
    for key in METRIC_KEYS:
        assert found[key] == pytest.approx(expected[key], abs=1e-5), key
    with pytest.raises(InputError, match=r"0\.\.10 or be void \(11\), got 77"):
        ours.update(dataclasses.replace(frame, label=np.full_like(frame.label, 77)), maps)


def test_factors_give_every_bit_of_rows_of_zeros_too() -> None:
    rows = np.array([[0.5, -0.25], [0.0, -0.0], [3.0, -0.0]], np.float32)
    values = rows * np.array([[0.3], [-1.0], [-2.0]], np.float32)
    found = factors(values, rows)
    assert found is not None and (rows * found[:, None]).tobytes() == values.tobytes()
    assert factors(values + np.float32(1.0), rows) is None


def test_parameters_are_counted_without_building_the_network() -> None:
    for name in ("street-tiny", "road-mobile"):
        model = open_checkpoint(name)
        assert count_parameters(model.path) == sum(one.numel() for one in model.network().parameters())


@pytest.mark.parametrize("preset", ["cpu", "realtime", "mobile"])
def test_stride_and_dropout_are_known_from_the_options(preset: str) -> None:
    config = PRESETS[preset]
    network = build_network(config.network, config.network_options, 11)
    meta = dataclasses.replace(open_checkpoint("street-tiny").meta, options=dataclasses.asdict(config.network_options))
    assert head_stride(meta) == getattr(network, "head_stride", 1)
    assert is_stochastic(network)
    require_dropout(meta, Method("bnn", samples=2))
    plain = dataclasses.replace(meta, options={name: 0 for name in meta.options if name.endswith("dropout")})
    with pytest.raises(InputError, match="no dropout; use mode dnn"):
        require_dropout(plain, Method("bnn", samples=2))


def test_without_torch_a_wide_video_takes_the_nearest_shipped_width(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("STEADYSEG_CACHE", str(tmp_path))
    network = stored("road-mobile", "vq-dnn", "fp32")
    assert network.nearest(224, 512) == (224, 512)
    monkeypatch.setattr("steadyseg.runtime.network_plan.find_spec", lambda name: None)
    network = stored("road-mobile", "vq-dnn", "fp32")
    assert [network.nearest(224, width) for width in (512, 384, 544)] == [(224, 544), (224, 384), (224, 544)]
    assert "no network for 512x224 pixels: pictures are made 6% wider for 544x224" in capsys.readouterr().err
    assert network.nearest(224, 2240) == (224, 2240), "too far: refused when it is opened"
