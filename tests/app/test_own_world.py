"""What a network knows of its training domain: fitted, kept in the checkpoint, told by every backend."""

import dataclasses
import json
from collections.abc import Iterator
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
from steadyseg.core.expected import ExpectedAccuracy
from steadyseg.core.frame import Frame
from steadyseg.core.method import Method, settings
from steadyseg.core.model.checkpoint import load_checkpoint, save_checkpoint
from steadyseg.core.segmenter import Segmenter
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.runtime.graph_backend import GraphBackend
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.street.drive import Street
from steadyseg.studies.analysis.__main__ import main as analyze

SIZE = 64, 96
METHOD = {"mode": "vq-dnn", "motion": False}

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]


@pytest.fixture(scope="module", autouse=True)
def few_pictures() -> Iterator[None]:
    """Fits take a third of the changed and made pictures, and an eighth of the network's rounded ones."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"CHANGED": 5, "MADE": 4, "MADE_ROWS": 96}.items():
            patch.setattr(f"steadyseg.seg.familiarity.frames.{name}", value)
        patch.setattr("steadyseg.app.evaluation.int8.MAX_FITTED", 8)
        yield


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
    about, expected = meta.familiarity["about"], ExpectedAccuracy.read(meta.familiarity["expected"])
    assert (about["held_out"], about["held_out_pictures"], len(meta.familiarity["scores"])) == (20, 60, 60)
    assert len(meta.familiarity["dropout"]["scores"]) == 60
    assert len(expected.costs[0]) == len(meta.classes) and 0 < expected.error < 0.5
    assert min(expected.confidence, expected.score, expected.layout) >= 0 and not about["also"]
    low, high = about["novel_interval"]
    assert 0 < low < 0.05 < high < 0.2


def test_int8_has_scales_of_its_own(knowing: Path, recordings: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.safetensors"
    flags = ["--data", str(recordings), "--mode", "vq-dnn", "--motion", "off", "--int8"]
    assert main(["calibrate", str(knowing), *flags, "--familiarity", "-o", str(both)]) == 0
    tensors, meta = load_checkpoint(both)
    assert {f"int8.{name}" for name in meta.int8["ranges"]} == {name for name in tensors if name.startswith("int8.")}
    for one, other in (("int8", meta.familiarity), ("int8_dropout", meta.familiarity["dropout"])):
        assert meta.familiarity[one]["mean"] != other["mean"] and len(meta.familiarity[one]["scores"]) == 60
    full, small = (opened(both, **METHOD, backend="openvino", precision=number) for number in ("fp32", "int8"))
    assert small.reference is not None and small.reference.scores == tuple(meta.familiarity["int8"]["scores"])
    drawing = opened(both, mode="bnn", motion=False, backend="openvino", precision="int8")
    assert drawing.reference is not None and drawing.reference.scores == tuple(
        meta.familiarity["int8_dropout"]["scores"]
    )
    apart = [abs(a - b) for (a, _), (b, _) in zip(told(full, drive(6)), told(small, drive(6)), strict=True)]  # type: ignore[operator]
    assert max(apart) <= 0.05, apart


def test_int8_without_a_scale_of_its_own_knows_nothing_and_is_taken_on_request_alone(
    knowing, recordings, tmp_path, capsys
):
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
    segmenter = opened(later, **METHOD, backend="openvino", precision="int8")
    assert "no familiarity, which has no scale in it" in segmenter.why
    assert segmenter.reference is None and told(segmenter, drive(1))[0][0] is None
    full, first = (opened(one, **METHOD, backend="openvino", precision="fp32") for one in (later, knowing))
    assert full.reference is not None and told(full, drive(1)) == told(first, drive(1))
    is_small = {"accuracy": [0.9, 0.9], "ece": [0.01, 0.01]}
    unproven = dataclasses.replace(found, int8=found.int8 | is_small)
    assert not unproven.int8_is_proven and dataclasses.replace(unproven, familiarity={}).int8_is_proven


def test_the_expected_accuracy_is_near_the_true_one_of_another_drive(knowing, recordings, tmp_path):
    flags = ["--data", str(recordings), "--split", "val", "--protocol", "stream", "--mode", "vq-dnn", "--motion", "off"]
    path = tmp_path / "record.json"
    assert main(["evaluate", str(knowing), *flags, "--report", str(path)]) == 0
    record = json.loads(path.read_text())
    assert record["conformal"]["lac"]["coverage"] == pytest.approx(0.9, abs=0.02)  # of these very frames
    assert record["expected_accuracy_error"] < 0.05


def test_a_video_says_where_few_labels_can_be_trusted(knowing: Path, tmp_path: Path) -> None:
    source, out, report = (tmp_path / name for name in ("in.mkv", "out.mkv", "report.json"))
    write_video(source, [*drive(4), *(noise(seed) for seed in range(9))], codec="ffv1", fps=1)
    flags = ["--mode", "vq-dnn", "--motion", "off", "--view", "energy", "--backend", "torch"]
    assert main(["video", str(source), "-o", str(out), "--model", str(knowing), *flags, "--report", str(report)]) == 0
    record = json.loads(report.read_text())
    assert (record["frames"], record["novel_frames"]) == (13, 9)
    assert record["state"] == "unlike" and record["verdicts"] == {"unlike": 0.6923, "expected": 0.3077}
    low, high = record["expected_accuracy_interval"]
    assert 0 <= low < record["expected_accuracy"] < high < 0.6
    assert record["verdict"].startswith("few labels can be trusted in 69 % of the frames")
    pictures = [frame.to_ndarray(format="rgb24")[:8] for frame in av.open(str(out)).decode(video=0)]
    reds = [int(line[..., 0].mean() > line[..., 1].mean() + 60) for line in pictures]
    assert reds == [0] * 4 + [1] * 9, "the line is red on noise alone"


def test_familiarity_is_averaged_over_time_and_starts_anew_with_the_stream(knowing: Path) -> None:
    segmenter = opened_by_torch(knowing, **METHOD)
    picture = drive(1)[0]
    noisy = (picture // 2 + noise(0) // 2).astype(np.uint8)  # still the same scene
    novel = segmenter.step(Frame(noisy, 0, 0.0)).familiarity
    after_noise = segmenter.step(Frame(picture, 1, 0.1)).familiarity
    much_later = segmenter.step(Frame(picture, 100, 7.0)).familiarity
    anew = segmenter.step(Frame(picture, 101, 7.1, discontinuity=True)).familiarity
    assert novel <= 0.05 < anew == much_later and novel < after_noise < anew, (novel, after_noise, anew, much_later)


def test_the_cpu_backend_tells_the_same(knowing: Path) -> None:
    images = [*drive(4), noise(1)]
    by_torch = opened_by_torch(knowing, **METHOD)
    on_cpu = opened(knowing, **METHOD, backend="openvino", precision="fp32")
    for number, image in enumerate(images):
        one, other = (each.step(Frame(image, number, number / 15)) for each in (by_torch, on_cpu))
        assert one.familiarity == pytest.approx(other.familiarity, abs=2 / 61)
        assert one.expected_accuracy == pytest.approx(other.expected_accuracy, abs=2e-3)
        assert one.energy is not None and other.energy is not None and one.energy.shape == SIZE
        assert np.abs(one.energy.astype(int) - other.energy).max() <= 2


@pytest.mark.long
def test_the_graph_tells_the_same(knowing: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.onnx"
    flags = ["--stateful", "--motion", "off", "--size", str(SIZE[0])]
    assert main(["export", str(knowing), *flags, "-o", str(path)]) == 0
    images, by_torch = [*drive(3), noise(1)], opened_by_torch(knowing, **METHOD, size=SIZE[0])
    by_torch.module.fixed_size = opened(path).size
    expected = told(by_torch, images)
    whole = Segmenter(GraphBackend(path.read_bytes(), read_onnx(path).meta, "cpu"))
    for graph in (whole, opened(path, backend="onnxruntime")):
        assert (np.abs(np.subtract(told(graph, images), expected)).max(0) <= (2 / 61, 2e-3)).all()


@pytest.mark.long
def test_any_graph_file_learns_it(graphs: Graphs, tmp_path: Path, capsys: Any) -> None:
    """Its file carries a proof. The pictures have another aspect, and its convolutions show 4 stages."""
    path, square = tmp_path / "k.onnx", street_drive((64, 64))
    assert main(["calibrate", str(graphs("vq-dnn")), "--data", str(square), "--familiarity", "-o", str(path)]) == 0
    assert capsys.readouterr().err.split("familiarity compares")[1].splitlines()[0].count(",") == 3
    assert read_onnx(path).meta.expected, "and the expected accuracy"
    for name in ("openvino", "onnxruntime"):
        shares = [share for share, _ in told(opened(path, backend=name, precision="fp32"), [*drive(3), noise(0)])]
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
def test_every_backend_tells_it_of_dropout_passes(knowing_passes: Path, tmp_path: Path, flags: dict[str, Any]) -> None:
    """Masks differ from backend to backend, so means are compared."""
    graph = tmp_path / "k.onnx"
    given = ["--mode", flags["mode"], "--samples", str(flags.get("samples", 1)), "--motion", "off"]
    assert main(["export", str(knowing_passes), "--stateful", *given, "-o", str(graph)]) == 0
    images = [cv2.resize(image, opened(graph).size[::-1]) for image in [*drive(3), noise(1)]]
    expected = told_on_average(opened_by_torch(knowing_passes, **flags), images)
    assert (expected[:3, 0] > 0.05).all() and expected[3, 0] < 0.05, expected
    for other in (
        opened(knowing_passes, **flags, backend="openvino", precision="fp32"),
        Segmenter(GraphBackend(graph.read_bytes(), read_onnx(graph).meta, "cpu")),
        opened(graph),
    ):
        means = told_on_average(other, images)
        np.testing.assert_allclose(means[:, 0], expected[:, 0], atol=0.15, err_msg=other.backend)
        np.testing.assert_allclose(means[:, 1], expected[:, 1], atol=0.01, err_msg=other.backend)


def test_another_method_does_not_use_it_and_says_so(knowing: Path) -> None:
    for flags in ({"mode": "vq-dnn", "motion": False, "tau": 3.0}, {"mode": "bnn", "samples": 3}):
        segmenter = opened_by_torch(knowing, **flags)
        assert segmenter.error is None and "no temperature was fitted for" in segmenter.method.note
        maps = segmenter.step(Frame(drive(1)[0], 0, 0.0))
        assert maps.familiarity is not None and maps.verdict == "not calibrated"


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


def test_a_record_that_cannot_be_used_is_one_line(knowing: Path, tmp_path: Path) -> None:
    tensors, meta = load_checkpoint(knowing)
    path = tmp_path / "bad.safetensors"
    stage, expected = meta.familiarity["stages"][0], meta.familiarity["expected"]
    for change, words in (
        ({"stages": ["enc99", *meta.familiarity["stages"][1:]]}, "enc99"),
        ({"mean": [float("inf")] * len(meta.familiarity["mean"])}, "mean cannot be used"),
        ({"scores": meta.familiarity["scores"][:5]}, "scores cannot be used"),
        ({"expected": expected | {"layout": -0.1}}, "expected cannot be used"),
        ({"expected": expected | {"costs": expected["costs"][:3]}}, "costs of expected cannot be used"),
        ({"expected": expected | {"costs": [[1.0]] * 4}}, "not of 11 classes"),
        ({"dropout": meta.familiarity["dropout"] | {"deviation": [0.0]}}, "deviation cannot be used"),
        ({"int8": meta.familiarity["dropout"] | {"scores": [0.0]}}, "scores cannot be used"),
        ({"int8_dropout": []}, "int8_dropout cannot be used"),
    ):
        save_checkpoint(path, tensors, dataclasses.replace(meta, familiarity=meta.familiarity | change))
        assert words in refusal(opened_by_torch, path, **METHOD)
    save_checkpoint(path, {k: v for k, v in tensors.items() if k != f"novelty.{stage}.whiten.bias"}, meta)
    assert "do not fit their record" in refusal(opened_by_torch, path, **METHOD)
