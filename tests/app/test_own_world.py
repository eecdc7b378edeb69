"""What a network knows of its training domain: fitted by the command, kept in the checkpoint, told by every
executor."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from made.graphs import Graphs
from made.methods import opened, opened_by_torch
from made.pictures import street_drive
from made.video import write_video
from refusals import refusal

from steadyseg.app.cli import main
from steadyseg.core.frame import Frame
from steadyseg.core.method import Method, settings
from steadyseg.core.model.checkpoint import load_checkpoint, save_checkpoint
from steadyseg.core.segmenter import Segmenter
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.runtime.graph_executor import GraphExecutor
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.street.drive import Street
from steadyseg.studies.analysis.__main__ import main as analyze

SIZE = 64, 96
METHOD = {"mode": "vq-dnn", "motion": False, "adaptive": True}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recordings() -> Path:
    return street_drive(SIZE)


@pytest.fixture(scope="module")
def knowing(tmp_path_factory: pytest.TempPathFactory, recordings: Path) -> Path:
    """The street's network at the size of these pictures."""
    folder = tmp_path_factory.mktemp("knowing")
    small, path = folder / "small.safetensors", folder / "k.safetensors"
    tensors, meta = load_checkpoint(find_checkpoint("street-tiny"))
    save_checkpoint(small, tensors, dataclasses.replace(meta, height=SIZE[0], width=SIZE[1]))
    flags = ["--data", str(recordings), "--mode", "vq-dnn", "--motion", "off", "--familiarity", "-o", str(path)]
    assert main(["calibrate", str(small), *flags]) == 0
    return path


def told(segmenter: Segmenter, images: list[np.ndarray]) -> list[tuple[float | None, float | None]]:
    maps = [segmenter.step(Frame(image, number, number / 15)) for number, image in enumerate(images)]
    return [(one.familiarity, one.expected_accuracy) for one in maps]


def told_on_average(segmenter: Segmenter, images: list[np.ndarray]) -> np.ndarray:
    """(images, 2): mean of 12 streams, since one draw of masks moves familiarity by up to 0.2 (seen)."""
    streams = []
    for _ in range(12):
        segmenter.reset()
        streams.append(told(segmenter, images))
    return np.array(streams, float).mean(0)


def drive(count: int) -> list[np.ndarray]:
    return [Street(seed=1001, height=SIZE[0], width=SIZE[1]).frame(2 * number).image for number in range(count)]


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*SIZE, 3), dtype=np.uint8)


def test_the_record_says_what_it_was_fitted_on(knowing: Path) -> None:
    _, meta = load_checkpoint(knowing)
    about, warming = meta.familiarity["about"], meta.familiarity["warming"]
    assert (about["held_out"], about["held_out_pictures"], len(meta.familiarity["scores"])) == (20, 60, 60)
    assert len(meta.familiarity["dropout"]["scores"]) == 60
    assert warming["nll"] < warming["nll_one_temperature"]
    low, high = about["alarm_rate_interval"]
    assert 0 < low < 0.05 < high < 0.2


def test_int8_has_scales_of_its_own(knowing: Path, recordings: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.safetensors"
    flags = ["--data", str(recordings), "--mode", "vq-dnn", "--motion", "off", "--int8"]
    assert main(["calibrate", str(knowing), *flags, "--familiarity", "-o", str(both)]) == 0
    tensors, meta = load_checkpoint(both)
    assert {f"int8.{name}" for name in meta.int8["ranges"]} == {name for name in tensors if name.startswith("int8.")}
    for one, other in (("int8", meta.familiarity), ("int8_dropout", meta.familiarity["dropout"])):
        assert meta.familiarity[one]["mean"] != other["mean"] and len(meta.familiarity[one]["scores"]) == 60
    full, small = (opened(both, **METHOD, executor="openvino", precision=number) for number in ("fp32", "int8"))
    assert small.reference is not None and small.reference.scores == tuple(meta.familiarity["int8"]["scores"])
    drawing = opened(both, mode="bnn", motion=False, executor="openvino", precision="int8")
    assert drawing.reference is not None and drawing.reference.scores == tuple(
        meta.familiarity["int8_dropout"]["scores"]
    )
    apart = [abs(a - b) for (a, _), (b, _) in zip(told(full, drive(6)), told(small, drive(6)), strict=True)]  # type: ignore[operator]
    assert max(apart) <= 0.05, apart


def test_int8_without_a_scale_of_its_own_knows_nothing_and_is_taken_on_request_alone(
    knowing: Path, recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later, older = tmp_path / "later.safetensors", tmp_path / "older.safetensors"
    tensors, meta = load_checkpoint(knowing)
    save_checkpoint(
        older, tensors, dataclasses.replace(meta, familiarity=meta.familiarity | {"int8": meta.familiarity["dropout"]})
    )
    flags = ["--data", str(recordings), "--mode", "vq-dnn", "--motion", "off", "--int8", "-o", str(later)]
    assert main(["calibrate", str(older), *flags]) == 0
    assert "taken with --precision int8 alone: familiarity is not fitted in it" in capsys.readouterr().out
    found = load_checkpoint(later)[1]
    assert "int8" not in found.familiarity, "it was of the earlier rounding"
    plain = METHOD | {"adaptive": False}
    segmenter = opened(later, **plain, executor="openvino", precision="int8")
    assert "no familiarity, which has no scale in it" in segmenter.why
    assert segmenter.reference is None and told(segmenter, drive(1))[0][0] is None
    assert "later.safetensors has no statistics of frames in int8" in refusal(opened, later, **METHOD, precision="int8")
    full = opened(later, **plain, executor="openvino", precision="fp32")
    assert full.reference is not None and told(full, drive(1)) == told(
        opened(knowing, **plain, executor="openvino", precision="fp32"), drive(1)
    )
    is_small = {"accuracy": [0.9, 0.9], "ece": [0.01, 0.01]}
    unproven = dataclasses.replace(found, int8=found.int8 | is_small)
    assert not unproven.int8_is_proven and dataclasses.replace(unproven, familiarity={}).int8_is_proven


def test_noise_is_novel_and_expected_to_be_wrong_and_a_drive_is_not(knowing: Path) -> None:
    segmenter = opened_by_torch(knowing, **METHOD)
    usual = told(segmenter, drive(3))
    segmenter.reset()
    novel = told(segmenter, [noise(0)])
    assert all(familiarity is not None and familiarity > 0.05 for familiarity, _ in usual), usual
    assert novel[0][0] == pytest.approx(1 / 61)
    assert novel[0][1] is not None and usual[0][1] is not None and novel[0][1] < usual[0][1]


def test_usual_frames_have_the_one_temperature_and_novel_ones_a_higher(
    knowing: Path, recordings: Path, tmp_path: Path
) -> None:
    flags = ["--data", str(recordings), "--split", "val", "--protocol", "stream", "--mode", "vq-dnn", "--motion", "off"]
    records = []
    for adaptive in ("on", "off"):
        path = tmp_path / f"{adaptive}.json"
        assert main(["evaluate", str(knowing), *flags, "--adaptive", adaptive, "--report", str(path)]) == 0
        records.append(json.loads(path.read_text()))
        assert records[-1]["conformal"]["lac"]["coverage"] == pytest.approx(0.9, abs=0.02)  # of these very frames
        assert records[-1]["expected_accuracy_error"] < 0.5
    assert records[0]["nll"] == records[1]["nll"] and records[0]["ece"] == records[1]["ece"]
    one, own = (opened_by_torch(knowing, **METHOD | {"adaptive": adaptive}) for adaptive in (False, True))
    sure, unsure = (segmenter.step(Frame(noise(0), 0, 0.0)).confidence.mean() for segmenter in (one, own))
    assert unsure < sure - 10


def test_a_video_says_where_it_is_novel(knowing: Path, tmp_path: Path) -> None:
    source, out, report = (tmp_path / name for name in ("in.mkv", "out.mkv", "report.json"))
    write_video(source, [*drive(4), *(noise(seed) for seed in range(9))], codec="ffv1", fps=1)
    flags = ["--mode", "dnn", "--view", "energy", "--executor", "torch"]
    assert main(["video", str(source), "-o", str(out), "--model", str(knowing), *flags, "--report", str(report)]) == 0
    record = json.loads(report.read_text())
    assert (record["frames"], record["novel_frames"], record["ood_alarms"]) == (13, 9, 1)
    assert record["ood"][0]["since_s"] == 4 and record["ood"][0]["alarm_s"] < record["ood"][0]["until_s"] == 12
    pictures = [frame.to_ndarray(format="rgb24") for frame in av.open(str(out)).decode(video=0)]
    assert all(picture[:8, :, 0].mean() > picture[:8, :, 2].mean() + 60 for picture in pictures), "the line is amber"
    assert record["state"] == "unfamiliar" and record["verdicts"] == {"unfamiliar": 0.6923, "not calibrated": 0.3077}
    assert record["expected_accuracy"] == record["mean_confidence"] and "verified_accuracy" not in record


def test_a_video_says_since_when_its_expected_accuracy_is_low(knowing: Path, tmp_path: Path, capsys: Any) -> None:
    source, report = tmp_path / "in.mkv", tmp_path / "report.json"
    flags = ("--mode", "vq-dnn", "--motion", "off", "--executor", "torch")
    write_video(source, drive(8), codec="ffv1", fps=1)
    command = ["video", str(source), "--model", str(knowing), *flags, "--report", str(report), "--overwrite"]
    found = []
    for limit in (0.0, 1.0):
        assert main([*command, "--config", f"low_accuracy={limit}"]) == 0
        found.append(json.loads(report.read_text()))
    assert found[0]["low_accuracies"] == 0 and "below" not in found[0]["verdict"]
    (low,) = found[1]["low_accuracy"]
    assert (low["limit"], low["since_s"], low["alarm_s"], low["until_s"]) == (1.0, 0.0, 2.0, 7.0)
    assert found[1]["verdict"].startswith("expected accuracy below 100 % from 0:00 to 0:07")
    assert main([*command, "--config", "low_accuracy=80"]) == 2
    assert "low_accuracy must lie in 0..1, got 80" in capsys.readouterr().err


def test_familiarity_is_averaged_over_time_and_starts_anew_with_the_stream(knowing: Path) -> None:
    segmenter = opened_by_torch(knowing, **METHOD)
    picture = drive(1)[0]
    noisy = (picture // 2 + noise(0) // 2).astype(np.uint8)  # still the same scene
    novel = segmenter.step(Frame(noisy, 0, 0.0)).familiarity
    after_noise = segmenter.step(Frame(picture, 1, 0.1)).familiarity
    much_later = segmenter.step(Frame(picture, 100, 7.0)).familiarity
    anew = segmenter.step(Frame(picture, 101, 7.1, discontinuity=True)).familiarity
    assert novel <= 0.05 < anew == much_later and novel < after_noise < anew, (novel, after_noise, anew, much_later)


def test_the_cpu_executor_tells_the_same(knowing: Path) -> None:
    images = [*drive(4), noise(1)]
    by_torch = opened_by_torch(knowing, **METHOD)
    on_cpu = opened(knowing, **METHOD, executor="openvino", precision="fp32")
    for number, image in enumerate(images):
        one, other = (each.step(Frame(image, number, number / 15)) for each in (by_torch, on_cpu))
        assert one.familiarity == pytest.approx(other.familiarity, abs=2 / 61)
        assert one.expected_accuracy == pytest.approx(other.expected_accuracy, abs=2e-3)
        assert one.energy is not None and other.energy is not None and one.energy.shape == SIZE
        assert np.abs(one.energy.astype(int) - other.energy).max() <= 2


@pytest.mark.long
def test_the_graph_tells_the_same(knowing: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.onnx"
    flags = ["--stateful", "--adaptive", "on", "--motion", "off", "--size", str(SIZE[0])]
    assert main(["export", str(knowing), *flags, "-o", str(path)]) == 0
    images, by_torch = [*drive(3), noise(1)], opened_by_torch(knowing, **METHOD, size=SIZE[0])
    by_torch.module.fixed_size = opened(path).size
    expected = told(by_torch, images)
    whole = Segmenter(GraphExecutor(path.read_bytes(), read_onnx(path).meta, "cpu"))
    for graph in (whole, opened(path, executor="onnxruntime")):
        assert (np.abs(np.subtract(told(graph, images), expected)).max(0) <= (2 / 61, 2e-3)).all()


@pytest.mark.long
def test_any_graph_file_learns_it(graphs: Graphs, tmp_path: Path, capsys: Any) -> None:
    """From pictures of another aspect than the graph's, and the stages that its convolutions show: 4 of the U-Net's
    decoder. Its file carries a proof of the result."""
    path, square = tmp_path / "k.onnx", street_drive((64, 64))
    assert main(["calibrate", str(graphs("vq-dnn")), "--data", str(square), "--familiarity", "-o", str(path)]) == 0
    assert capsys.readouterr().err.split("familiarity compares")[1].splitlines()[0].count(",") == 3
    for name in ("openvino", "onnxruntime"):
        shares = [share for share, _ in told(opened(path, executor=name, precision="fp32"), [*drive(3), noise(0)])]
        assert min(shares[:3]) > 0.05 > shares[3], shares


@pytest.fixture(scope="module")
def knowing_passes(knowing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of `knowing`, as if temperatures of dropout passes had been fitted too."""
    path = tmp_path_factory.mktemp("passes") / "k.safetensors"
    tensors, meta = load_checkpoint(knowing)
    for method in (Method("vq-bnn", tau=1.25), Method("bnn", 3)):
        meta = meta.with_fit(method, settings(method) | {"temperature": 1.2})
    save_checkpoint(path, tensors, meta)
    return path


@pytest.mark.long
@pytest.mark.parametrize("flags", [{"mode": "vq-bnn", "motion": False}, {"mode": "bnn", "samples": 3}])
def test_every_executor_tells_it_of_dropout_passes(knowing_passes: Path, tmp_path: Path, flags: dict[str, Any]) -> None:
    """Masks differ from executor to executor, so means are compared."""
    graph = tmp_path / "k.onnx"
    flags = flags | {"adaptive": True}
    given = ["--mode", flags["mode"], "--samples", str(flags.get("samples", 1)), "--motion", "off"]
    given += ["--adaptive", "on"]
    assert main(["export", str(knowing_passes), "--stateful", *given, "-o", str(graph)]) == 0
    images = [cv2.resize(image, opened(graph).size[::-1]) for image in [*drive(3), noise(1)]]
    expected = told_on_average(opened_by_torch(knowing_passes, **flags), images)
    assert (expected[:3, 0] > 0.05).all() and expected[3, 0] < 0.05, expected
    for other in (
        opened(knowing_passes, **flags, executor="openvino", precision="fp32"),
        Segmenter(GraphExecutor(graph.read_bytes(), read_onnx(graph).meta, "cpu")),
        opened(graph),
    ):
        means = told_on_average(other, images)
        np.testing.assert_allclose(means[:, 0], expected[:, 0], atol=0.15, err_msg=other.executor)
        np.testing.assert_allclose(means[:, 1], expected[:, 1], atol=0.01, err_msg=other.executor)


def test_another_method_does_not_use_it_and_says_so(knowing: Path) -> None:
    for flags in ({"mode": "vq-dnn", "motion": False, "tau": 3.0}, {"mode": "bnn", "samples": 3}):
        segmenter = opened_by_torch(knowing, **flags)
        assert not segmenter.method.adaptive and "no temperature was fitted for" in segmenter.method.note
        maps = segmenter.step(Frame(drive(1)[0], 0, 0.0))
        assert maps.familiarity is not None and maps.verdict == "not calibrated"
    without = opened_by_torch(knowing, mode="vq-dnn", motion=False)
    assert without.method.calibrated and not without.method.adaptive and not without.method.note
    assert "no temperature was fitted for bnn" in refusal(opened_by_torch, knowing, mode="bnn", adaptive=True)


def test_reliability_groups_pictures_by_their_familiarity(knowing: Path, recordings: Path, tmp_path: Path) -> None:
    flags = ["--data", str(recordings), "--split", "val", "--images", "2", "--config", "samples=2", "-o", str(tmp_path)]
    assert analyze(["reliability", str(knowing), *flags]) == 0
    rows = json.loads((tmp_path / "report.json").read_text())["results"]["rows"]
    groups = {row["mode"]: row["group"] for row in rows if row["by"] == "familiarity"}
    assert "score" in groups["dnn"] and "entropy" in groups["bnn x2"], groups


def test_a_checkpoint_without_it_works_as_before() -> None:
    maps = opened_by_torch("street-tiny", mode="dnn").step(Frame(drive(1)[0], 0, 0.0))
    assert maps.familiarity is None and maps.verdict in ("no statistics", "not calibrated")
    assert maps.expected_accuracy == pytest.approx(maps.confidence.mean() / 255)
    words = "there are no statistics of frames for dnn"
    assert words in refusal(opened_by_torch, "street-tiny", mode="dnn", adaptive=True)


def test_a_record_that_cannot_be_used_is_one_line(knowing: Path, tmp_path: Path) -> None:
    tensors, meta = load_checkpoint(knowing)
    path = tmp_path / "bad.safetensors"
    stage = meta.familiarity["stages"][0]
    for change, words in (
        ({"stages": ["enc99", *meta.familiarity["stages"][1:]]}, "enc99"),
        ({"mean": [float("inf")] * len(meta.familiarity["mean"])}, "mean cannot be used"),
        ({"scores": meta.familiarity["scores"][:5]}, "scores cannot be used"),
        ({"warming": meta.familiarity["warming"] | {"slopes": [0.0]}}, "warming cannot be used"),
        ({"dropout": meta.familiarity["dropout"] | {"deviation": [0.0]}}, "deviation cannot be used"),
        ({"int8": meta.familiarity["dropout"] | {"scores": [0.0]}}, "scores cannot be used"),
        ({"int8_dropout": []}, "int8_dropout cannot be used"),
    ):
        save_checkpoint(path, tensors, dataclasses.replace(meta, familiarity=meta.familiarity | change))
        assert words in refusal(opened_by_torch, path, **METHOD)
    save_checkpoint(path, {k: v for k, v in tensors.items() if k != f"novelty.{stage}.whiten.bias"}, meta)
    assert "do not fit their record" in refusal(opened_by_torch, path, **METHOD)
