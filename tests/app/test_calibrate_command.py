"""`steadyseg calibrate`: what it stores, what `evaluate` makes of it, and one line and exit code 2 for bad input."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.graphs import HEIGHT, WIDTH
from made.pictures import labelled_folder, picture, save_split
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.app.export.calibrate import model_of
from steadyseg.app.page.parts.controls import describe_threshold, second_choices
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import load_checkpoint, read_meta, save_checkpoint
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.seg.pretrained import find_checkpoint

FRAMES = 3
WITH, WITHOUT = ("--calibrated", "on"), ("--calibrated", "off")
FIGURES = ("nll", "accuracy", "miou", "ece", "brier", "consistency", "cec", "aurc")

FITTED = "vq-dnn, tau 1.25, motion, geometric"
"""The method that calibrate takes by default."""


@pytest.fixture(scope="module", autouse=True)
def short_street() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steadyseg.app.evaluation.data.STREET_FRAMES", FRAMES)
        yield


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`street-tiny` with a temperature for vq-dnn."""
    path = tmp_path_factory.mktemp("calibrated") / "c.safetensors"
    assert main(["calibrate", "street-tiny", "--data", "street", "-o", str(path)]) == 0
    return path


def evaluated(model: Path | str, folder: Path, *flags: str, data: str = "street") -> dict[str, Any]:
    path = folder / f"{len(list(folder.iterdir()))}.json"
    assert main(["evaluate", str(model), "--data", data, "--report", str(path), "--overwrite", *flags]) == 0
    return json.loads(path.read_text())


@pytest.mark.slow
def test_another_size_is_measured_as_if_it_were_the_networks_own(tmp_path: Path) -> None:
    tensors, meta = load_checkpoint(find_checkpoint("street-tiny"))
    save_checkpoint(tmp_path / "96.safetensors", tensors, dataclasses.replace(meta, height=96))
    data = str(labelled_folder(tmp_path / "data", 2, splits=("test",)))
    runs = [tmp_path / "96.safetensors"], ["street-tiny", "--config", "size=96"], ["street-tiny"]
    own, given, usual = (evaluated(model, tmp_path, *flags, data=data) for model, *flags in runs)
    assert own["nll"] == given["nll"] != usual["nll"] and (given["size"], usual["size"]) == (96, None)


@pytest.mark.slow
@pytest.mark.usefixtures("checked_here")
def test_a_strangers_file_carries_its_calibration(graphs, tmp_path, capsys):
    """Temperature, sets, a class's bound and what remains above thresholds; evaluate, video and page read them."""
    mine, fitted = graphs("wrapped"), tmp_path / "fitted.onnx"
    video = ["video", "street:1:2", "-o", str(tmp_path / "v.mp4"), "--view", "set-size", "--model"]
    assert "set sizes need a calibration" in error_after_work(capsys, *video, mine)
    flags = ["--data", "street", "--risk-class", "Road", "--risk", "0.3"]
    fitted.with_suffix(".json").touch()  # a graph file has its record within
    assert main(["calibrate", str(mine), "-o", str(fitted), *flags]) == 0
    meta = read_onnx(fitted).meta
    assert meta.method.temperature == meta.fit["temperature"] != 1 and meta.method.calibrated
    assert (meta.source, meta.classes) == ("other", read_onnx(mine).meta.classes)
    kept, right = (meta.thresholds["sets"]["street"][key] for key in ("kept", "right"))
    assert kept[0] == 1.0 and kept == sorted(kept, reverse=True) and 0 < right[0] < 1
    record = evaluated(fitted, tmp_path, "--protocol", "stream")
    assert abs(record["conformal"]["lac"]["coverage"] - 0.9) < 0.02 and record["conformal"]["class_risk"]["risk"] <= 0.3
    assert abs(record["accuracy"] - right[0]) < 1e-3
    assert main([*video, str(fitted)]) == 0
    assert "of the pixels remain" in describe_threshold(str(fitted), MethodOptions(), 10.0)
    assert "needs calibration" not in str(second_choices(str(fitted), MethodOptions()))
    first, again = (model_of(read_onnx(path), False) for path in (mine, fitted))
    assert not again.meta.calibration, "a second fit begins from the same network, without the first one's temperature"
    torch.testing.assert_close(*(one.network()(torch.ones(1, 3, HEIGHT, WIDTH)) for one in (again, first)))
    for words, expected in (
        (["--familiarity", "--int8"], "--int8 is for checkpoints"),
        (["--mode", "dnn"], "was made for mode vq-dnn, got dnn"),
    ):
        line = error_after_work(capsys, "calibrate", fitted, "-o", tmp_path / "x.onnx", *flags, *words)
        assert expected in line


@pytest.mark.slow
def test_the_fit_is_stored_with_what_it_was_fitted_on_and_nothing_else_changes(calibrated: Path) -> None:
    (before, meta), (after, stored) = (load_checkpoint(path) for path in (find_checkpoint("street-tiny"), calibrated))
    assert dataclasses.replace(stored, calibration={}) == meta and list(stored.calibration) == [FITTED]
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    record = stored.calibration[FITTED]
    assert (record["data"], record["split"], record["protocol"], record["frames"]) == ("street", None, "stream", FRAMES)
    assert record["frame_list_hash"] == f"street_0_{meta.width}x{meta.height}_{FRAMES}"
    assert 0.5 < record["temperature"] < 3 and record["temperature"] != 1.0 and 0 <= record["flips"] < 0.01
    assert record["samples"] == 1 and record["tau"] > 0 and record["nll_after"] < record["nll_before"]
    assert record["conformal"]["coverage"] == 0.9 and 0 < record["conformal"]["lac"] < 1 and "class_risk" not in record
    assert json.loads(calibrated.with_suffix(".json").read_text())["calibration"] == stored.calibration


@pytest.mark.slow
def test_evaluate_uses_the_temperature_or_not_as_asked(calibrated, tmp_path, capsys):
    record, stream = read_meta(calibrated).calibration[FITTED], ("--protocol", "stream", "--mode", "vq-dnn")
    used, default = (evaluated(calibrated, tmp_path, *stream, *flags) for flags in (WITH, ()))
    assert used["fitted_on"] == {key: record[key] for key in ("data", "split", "protocol", "frame_list_hash")}
    assert capsys.readouterr().err.count("was fitted on this split") == 2
    assert used["calibrated"] is True and used["temperature"] == record["temperature"]
    assert all(used[key] == record[key] for key in ("samples", "tau", "motion", "frame_list_hash"))
    assert used["nll"] == pytest.approx(record["nll_after"], abs=1e-5)
    assert used["ece"] == pytest.approx(record["ece_after"], abs=1e-4)
    plain, old = evaluated(calibrated, tmp_path, *stream, *WITHOUT), evaluated("street-tiny", tmp_path, *stream)
    assert plain["fitted_on"] is None and "fitted on this split" not in capsys.readouterr().err
    assert plain["calibrated"] is False and plain["nll"] > used["nll"]
    for key in FIGURES:
        assert default[key] == used[key] and plain[key] == old[key], key


@pytest.mark.slow
def test_another_mode_is_added_and_a_class_is_bounded(calibrated: Path, tmp_path: Path) -> None:
    output = tmp_path / "both.safetensors"
    output.write_bytes(b"old")
    flags = "--overwrite --protocol stills --risk-class Road --risk 0.3 --coverage 0.8".split()
    assert main(["calibrate", str(calibrated), "--data", "street", "-o", str(output), *flags]) == 0
    first, both = read_meta(calibrated).calibration, read_meta(output).calibration
    assert list(both) == [FITTED, "dnn"] and both[FITTED] == first[FITTED]  # auto on stills: dnn
    record = both["dnn"]
    assert (record["protocol"], record["tau"], record["conformal"]["coverage"], record["flips"]) == (
        "stills",
        None,
        0.8,
        0,
    )
    risk = record["class_risk"]
    assert (risk["class"], risk["level"], risk["images"]) == ("Road", 0.3, FRAMES)
    assert (FRAMES * risk["risk"] + 1) / (FRAMES + 1) <= 0.3 and 0 < risk["threshold"] < 1


@pytest.mark.slow
def test_moving_stills_measure_the_temporal_mean_on_photographs(tmp_path: Path) -> None:
    data, reports = labelled_folder(tmp_path / "data", 2), tmp_path / "reports"
    reports.mkdir()
    flags = ("--protocol", "moving-stills", "--mode", "vq-dnn")
    result = evaluated("street-tiny", reports, *flags, data=str(data))
    assert (result["frames"], result["consistency_pairs"], result["frame_list"]) == (4, 2, ["0", "1"])
    stills = evaluated("street-tiny", reports, "--mode", "dnn", data=str(data))
    assert stills["frames"] == 2 and stills["frame_list_hash"] == result["frame_list_hash"]
    assert stills["nll"] != result["nll"]


@pytest.mark.slow
def test_a_temperature_for_one_mode_is_none_for_another(calibrated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = one_line_error(capsys, "evaluate", str(calibrated), "--data", "street", "--mode", "dnn", *WITH)
    assert f"no temperature was fitted for dnn (there is one for: {FITTED})" in line


REFUSED = {
    "calibrate": [
        ((2, 11), "", "0 labelled pixels are too few"),
        ((2, None), "", "check that these labels are of these images"),
        ((1, None), "--protocol stills", "1 image is too little"),
    ],
    "evaluate": [((2, 3), "", "all labelled pixels are Road")],
}
"""By command: how many pictures with which label, or the street, further words, and what the line says."""


@pytest.mark.slow
def test_too_few_images_for_a_bound_are_refused_before_the_work(tmp_path, capsys):
    words = ("calibrate", "street-tiny", "--data", "street", "--risk-class", "Road", "-o", tmp_path / "c.safetensors")
    line = one_line_error(capsys, *words)
    assert f"{FRAMES} images hold Road at most; to bound its misses by 0.05, 19 or more are needed" in line


@pytest.mark.slow
@pytest.mark.parametrize(("command", "row"), [(command, row) for command, rows in REFUSED.items() for row in rows])
def test_labels_that_nothing_can_be_fitted_to_or_measured_on_are_one_line(command, row, tmp_path, capsys):
    made, flags, words = row
    data = labelled_folder(tmp_path / "data", *made) if made else "street"
    output = ["-o", tmp_path / "c.safetensors"] if command == "calibrate" else []
    assert words in error_after_work(capsys, command, "street-tiny", "--data", data, *output, *flags.split())
    assert not (tmp_path / "c.safetensors").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "words"), [(0.4, "far less sure than it is right"), (5.0, "far surer than it is right")]
)
def test_a_temperature_beyond_the_usual_grid_is_fitted_and_explained(factor, words, tmp_path, capsys):
    """The logits of `street-tiny` times a factor: an unsure network and an overconfident one."""
    tensors, meta = load_checkpoint(find_checkpoint("street-tiny"))
    scaled = {name: tensors[name] * (factor if name.startswith("head.") else 1) for name in tensors}
    model, output = tmp_path / "m.safetensors", tmp_path / "c.safetensors"
    save_checkpoint(model, scaled, meta)
    assert main(["calibrate", str(model), "--data", "street", "-o", str(output), "--mode", "dnn"]) == 0
    (record,) = read_meta(output).calibration.values()
    assert words in capsys.readouterr().err and record["temperature"] / factor == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_random_weights_are_refused_before_the_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors, meta = load_checkpoint(find_checkpoint("street-tiny"))
    torch.manual_seed(1)
    drawn = {name: torch.randn_like(one) * one.std() if one.ndim > 1 else one for name, one in tensors.items()}
    save_checkpoint(tmp_path / "m.safetensors", drawn, meta)
    words = ["calibrate", tmp_path / "m.safetensors", "--data", "street", "-o", tmp_path / "c.safetensors"]
    said = error_after_work(capsys, *words)
    assert "of a class's pixels on the first images, and chance 9%: equal probabilities" in said


@pytest.mark.slow
def test_figures_name_their_classes_and_the_split_that_is_there(tmp_path, capsys):
    data = tmp_path / "data"
    label = np.full((48, 64), 3, np.uint8)
    label[:12] = 0
    save_split(data, "val", [("a", picture(0, 48, 64), label)])
    result = evaluated("street-tiny", tmp_path, data=str(data))
    assert result["split"] == "val" and result["constant_answer"] == {"class": "Road", "accuracy": 0.75}
    assert result["absent_classes"] == [name for name in result["class_names"] if name not in ("Sky", "Road")]
    printed = capsys.readouterr().out
    assert "mIoU is of 2 of 11 classes (no pixel of Building" in printed and "accuracy of 0.7500" in printed
