"""The bench: turns and budgets by a simulated clock, its baselines, and whole runs on a small network.

No speed is asserted anywhere: numbers are only checked against each other.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.video import grey_frames, write_video

from steadyseg.__main__ import main
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.model.int8 import Int8Conv
from steadyseg.core.prediction import Prediction
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.seg.networks.smp import SmpNetwork
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import SmpOptions, UNetOptions
from steadyseg.studies.harness.window import WindowSmoothing
from steadyseg.studies.performance.baselines import TAU, WINDOW, NaiveDeque, Published
from steadyseg.studies.performance.rows import GRAPH_ROWS, ROWS, chosen_rows
from steadyseg.studies.performance.timing import SHORT_S, Budget, Row, measure, turns
from steadyseg.studies.performance.variants import Subject, without_smoothing

SMALL = ("street-tiny", "--size", "64", "--config", "row_seconds=0.02")


class Clock:
    """A simulated clock, which only rows advance."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    def row(self, name: str, seconds_per_frame: float, frames: int = 1, later: float | None = None) -> Row:
        """`later`: seconds per frame from the fifth call on."""

        def run(count: int) -> None:
            self.calls.append((name, count))
            mine = sum(called == name for called, _ in self.calls)
            self.now += count * (seconds_per_frame if later is None or mine < 5 else later)

        return Row(name, run, "none", frames)


def test_rows_are_timed_in_turn_and_a_row_with_fewer_calls_is_spread_over_all_rounds() -> None:
    assert list(turns([3, 3, 3])) == [0, 1, 2, 0, 1, 2, 0, 1, 2]
    order = list(turns([12, 3, 5]))
    assert Counter(order) == {0: 12, 1: 3, 2: 5}
    places = [position for position, row in enumerate(order) if row == 1]
    assert min(np.diff(places)) >= 5 and places[-1] >= len(order) - 2
    assert list(turns([])) == []


def test_the_budget_gives_long_rows_the_least_and_short_ones_what_fits() -> None:
    budget = Budget(seconds=6.0, least=5, most=300)
    assert budget.calls(10.0) == 5
    assert budget.calls(0.5) == 12
    assert budget.calls(0.05) == 60  # every timed call has one before it that is not
    assert budget.calls(0.0) == 300


def test_the_times_are_those_of_the_clock_per_frame() -> None:
    clock = Clock()
    rows = [clock.row("short", 0.1), clock.row("clip", 0.2, frames=50)]
    short, clip = measure(rows, Budget(seconds=1.0), clock=clock)
    assert short.median_ms == pytest.approx(100) and short.frames_per_s == pytest.approx(10)
    assert len(short.samples_ms) == len(clip.samples_ms) == 5
    assert clip.median_ms == pytest.approx(200) and clip.p95_ms == pytest.approx(200)


def test_warming_up_is_not_timed_and_does_little_of_a_long_call() -> None:
    clock = Clock()
    (timing,) = measure([clock.row("clip", 0.2, frames=50, later=0.4)], Budget(seconds=1.0), clock=clock)
    assert clock.calls == [*[("clip", 10)] * 2, *[("clip", 50)] * 5], "the first call of a row compiles its kernels"
    assert timing.samples_ms == pytest.approx((200, 200, 400, 400, 400))
    assert timing.median_ms == pytest.approx(400) and timing.p95_ms == pytest.approx(400)


def test_a_short_call_has_one_before_it_that_is_not_timed() -> None:
    clock = Clock()
    measure([clock.row("short", SHORT_S / 2), clock.row("long", SHORT_S * 2)], Budget(seconds=0.1), clock=clock)
    after_warm_up = [name for name, _ in clock.calls[6:]]
    assert after_warm_up == ["short", "short", "long"] * 5


def test_rows_that_cannot_be_run_are_left_out_or_refused() -> None:
    assert chosen_rows((), ("a", "b", "c"), {"b": "reason"}) == ["a", "c"]
    with pytest.raises(InputError, match="row b cannot be run: reason"):
        chosen_rows(("b",), ("a", "b"), {"b": "reason"})


def test_the_deque_and_the_published_way_compute_the_windowed_mean() -> None:
    torch.manual_seed(0)
    logits = torch.randn(8, 4, 6, 5)
    pictures = [np.full((1, 6, 5, 3), index, np.uint8) for index in range(8)]
    naive = NaiveDeque(lambda picture: logits[int(picture[0, 0, 0, 0])], (6, 5))
    published = Published(lambda picture: logits[int(picture[0, 0, 0, 0])])
    for picture in pictures:
        label, confidence, entropy = naive(picture)
        mean = published(picture)
    smoothing, state = WindowSmoothing(TAU, WINDOW), None
    for one in logits:
        expected, state = smoothing(Prediction.from_logits(one[None]), state)
    torch.testing.assert_close(mean, expected.probs[0])
    torch.testing.assert_close(confidence, expected.confidence[0])
    torch.testing.assert_close(entropy, expected.entropy[0])
    assert torch.equal(label, expected.labels[0])
    assert naive.state_bytes == (WINDOW + 1) * 4 * 6 * 5 * 4


def has_smoothing(network: torch.nn.Module) -> bool:
    return any(isinstance(module, SpatialSmoothing) for module in network.modules())


def test_the_u_net_loses_its_smoothing_and_keeps_its_weights() -> None:
    network = UNet(5, UNetOptions(channels=4, depth=3, dropout_places=("enc3",))).eval()
    set_dropout_active(network, False)
    plain = without_smoothing(network)
    set_dropout_active(plain, False)
    assert has_smoothing(network) and not has_smoothing(plain)
    own, theirs = plain.state_dict(), network.state_dict()
    assert own.keys() == theirs.keys() and all(torch.equal(own[name], theirs[name]) for name in own)
    image = torch.rand(1, 3, 45, 32)
    assert plain(image).shape == network(image).shape and not torch.allclose(plain(image), network(image))


def test_an_smp_network_without_its_smoothing_is_the_one_built_without() -> None:
    options = {"encoder": "resnet18", "encoder_dropout": 0.1, "decoder_channels": (16, 16, 8, 8, 8)}
    smoothed = SmpNetwork(4, SmpOptions(**options)).eval()
    built = SmpNetwork(4, SmpOptions(**options, encoder_smoothing=False)).eval()
    built.load_state_dict(dict(zip(built.state_dict(), smoothed.state_dict().values(), strict=True)))
    plain = without_smoothing(smoothed)
    assert not has_smoothing(plain)
    image = torch.rand(1, 3, 64, 64)
    for network in (built, plain):
        set_dropout_active(network, False)
    with torch.no_grad():
        assert torch.equal(plain(image), built(image))


def test_each_network_of_the_subject_is_its_own() -> None:
    subject = Subject("street-tiny", 64)
    assert subject.has_dropout and subject.has_smoothing and subject.height == 64
    assert has_smoothing(subject.network("quiet")) and not has_smoothing(subject.network("plain"))
    assert subject.network("quiet") is not subject.network("quiet")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """96x64, so that the network sees its frames as they are."""
    return write_video(tmp_path_factory.mktemp("bench") / "clip.mp4", grey_frames(12, 64, 96))


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory, clip: Path) -> dict[str, Any]:
    """Every row, in the backend that is chosen here."""
    report = tmp_path_factory.mktemp("bench") / "r.json"
    assert main(["bench", *SMALL, "--source", str(clip), "--report", str(report)]) == 0
    return json.loads(report.read_text())


@pytest.mark.long
def test_a_whole_run_has_every_row_and_what_its_figures_depend_on(whole_run: dict[str, Any]) -> None:
    assert list(whole_run["rows"]) == list(ROWS)
    assert whole_run["size"] == [96, 64] and whole_run["clip"]["frames"] == 12
    assert set(whole_run["versions"]) == {"python", "torch", "openvino", "onnxruntime", "numba", "numpy"}
    assert whole_run["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert whole_run["load_average"] >= 0
    assert whole_run["cpu"] and whole_run["cores"] >= 1
    assert f"{whole_run['backend']}".endswith(whole_run["precision"])
    for name, row in whole_run["rows"].items():
        assert row["calls"] >= 5 and 0 < row["median_ms"] <= row["p95_ms"], name
        assert row["frames_per_s"] == pytest.approx(1e3 / row["median_ms"], rel=1e-2)
        assert row["frames_per_call"] == (12 if name.startswith(("end_to_end", "every")) else 1)
        if stages := row["stages_ms"]:
            assert set(stages) >= {"preprocess", "network", "smoothing"}, name
            assert ("motion" in stages) == name.startswith(("vq", "every")), name
        torch_only = name.startswith(("mc_whole", "mc_reuse"))
        assert row["backend"].startswith("torch") if torch_only else row["backend"] == whole_run["backend"], name


@pytest.mark.long
def test_the_ratios_are_those_of_the_medians(whole_run: dict[str, Any]) -> None:
    rows = whole_run["rows"]
    ratios = {ratio["name"]: ratio for ratio in whole_run["ratios"]}
    for name, ratio in ratios.items():
        row, base = name.split("/")
        assert ratio["value"] == pytest.approx(rows[base]["median_ms"] / rows[row]["median_ms"], rel=1e-2)
    for row in rows.values():
        if row["base"]:
            assert row["of_base"] == pytest.approx(rows[row["base"]]["median_ms"] / row["median_ms"], rel=1e-2)
    assert {"vq_dnn/naive_deque", "mc_reuse_5/mc_whole_5"} <= ratios.keys()


@pytest.mark.long
def test_arithmetic_and_memory_are_reported(whole_run: dict[str, Any]) -> None:
    arithmetic = whole_run["arithmetic"]
    rate = arithmetic["product_gflops_per_s"][arithmetic["compared_with"]]
    for name in ("bare_plain", "bare"):
        row = arithmetic["rows"][name]
        achieved = row["gflops_per_frame"] / whole_run["rows"][name]["median_ms"] * 1e3
        assert row["gflops_per_s"] == pytest.approx(achieved, rel=0.05, abs=0.1)
        assert row["share_of_products"] == pytest.approx(achieved / rate, rel=0.05, abs=1e-3)
    memory = whole_run["memory"]
    assert memory["naive_deque_bytes"] == 6 * 11 * 64 * 96 * 4
    assert 0 < memory["state_bytes"] < memory["naive_deque_bytes"]
    assert memory["peak_rss_bytes"] > 1e8


@pytest.mark.slow
def test_rows_can_be_chosen_and_torch_asked_for(tmp_path, clip, monkeypatch, capsys):
    monkeypatch.setattr("steadyseg.studies.performance.command.load_average", lambda: 0.0)
    report = tmp_path / "r.json"
    rows = ("bare_plain", "bare", "vq_bnn", "published", "end_to_end_video")
    arguments = ["--backend", "torch", "--precision", "bf16", "--source", str(clip), "--report", str(report)]
    assert main(["bench", *SMALL, *arguments, "--only", *reversed(rows)]) == 0
    record = json.loads(report.read_text())
    assert list(record["rows"]) == list(rows)
    assert {row["backend"] for row in record["rows"].values()} == {record["backend"]}
    assert record["backend"].startswith("torch") and record["precision"] == "bf16"
    assert record["ratios"][0]["name"] == "bare/bare_plain"
    assert record["memory"]["state_bytes"] == (11 + 1) * 64 * 96 * 4 + 4  # the mass is one number
    out = capsys.readouterr().out
    assert "other processes were busy" not in out
    assert "vq_bnn/published" in out and ">= 5.5" in out and "MC dropout smoothed (vq-bnn): one" in out


@pytest.mark.slow
def test_without_a_file_the_street_is_the_clip(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("steadyseg.studies.performance.clip.CLIP_FRAMES", 12)
    monkeypatch.setattr("steadyseg.studies.performance.command.load_average", lambda: 100.0)
    report = tmp_path / "r.json"
    arguments = [*SMALL, "--backend", "torch", "--report", str(report), "--only", "bare", "end_to_end_labels"]
    assert main(["bench", *arguments]) == 0
    record = json.loads(report.read_text())
    assert record["clip"] == {"name": "the procedural street", "width": 96, "height": 64, "frames": 12}
    assert record["rows"]["end_to_end_labels"]["frames_per_call"] == 12
    assert "other processes were busy" in capsys.readouterr().out


@pytest.mark.long
def test_a_graph_file_is_timed_too(tmp_path: Path, clip: Path) -> None:
    graph, report = tmp_path / "tiny.onnx", tmp_path / "r.json"
    assert main(["export", "street-tiny", "--stateful", "--size", "64", "-o", str(graph)]) == 0
    arguments = ["--config", "row_seconds=0.02", "--source", str(clip), "--report", str(report)]
    assert main(["bench", str(graph), *arguments]) == 0
    record = json.loads(report.read_text())
    assert list(record["rows"]) == list(GRAPH_ROWS) and record["size"] == [96, 64]
    assert {record["rows"][name]["backend"] for name in GRAPH_ROWS} == {record["backend"]}
    assert {ratio["name"] for ratio in record["ratios"]} >= {"step/bare", "end_to_end_labels/bare"}


@pytest.mark.parametrize("model", ["road-mobile", "camvid-unet-s"])
def test_int8_rounds_a_network_without_its_smoothing_too(model: str) -> None:
    subject = Subject(model, 64)
    plain = subject.network("plain", subject.meta.int8["ranges"])
    kinds = Counter(type(module) for module in plain.modules())
    assert kinds[Int8Conv] == len(subject.meta.int8["ranges"]) and not kinds[SpatialSmoothing]
