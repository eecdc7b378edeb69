"""The studies of networks' insides: reports of whole runs, and one line for bad input."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from made.classifier import save_classifier, save_pictures
from made.robustness import SIDE
from refusals import one_line_error

from steadyseg.app.cli import main as steadyseg
from steadyseg.classification.options import ClassifierOptions
from steadyseg.studies.analysis.__main__ import main

pytestmark = pytest.mark.slow  # the room has trained networks
STUDIES = ("fourier", "variance", "hessian", "landscape", "lesion", "similarity", "reliability")
SMALL: dict[str, tuple[str, ...]] = {
    "variance": ("--config", "samples=3"),
    "hessian": ("--split", "test", "--config", "top=2", "steps=4", "batch_size=2", "iterations=4"),
    "landscape": ("--split", "test", "--config", "points=3", "reach=0.5"),
    "reliability": ("--config", "samples=2"),
}


def run(out: Path, study: str, *arguments: str | Path) -> dict[str, Any]:
    assert main([study, *map(str, arguments), "--output", str(out), *SMALL.get(study, ())]) == 0
    return dict(json.loads((out / "report.json").read_text()))


def check_report(out: Path, study: str, record: dict[str, Any]) -> str:
    """Checks the parts that every report has."""
    assert record["study"] == study and record["notes"][:1] != ["unfinished"]
    assert record["cpu_seconds"] >= 0 and record["peak_memory_mb"] > 100
    assert record["command"].startswith("python -m steadyseg.studies.analysis")
    text = (out / "report.md").read_text()
    assert "s of processor time" in text and "nan" not in text.lower().replace("finance", "")
    return text


@pytest.mark.parametrize("study", STUDIES)
def test_two_classifiers_side_by_side(study: str, room: Path, tmp_path: Path) -> None:
    models = (room / "drop.safetensors", room / "smooth.safetensors")
    record = run(tmp_path, study, *models, "--data", room / "pictures", "--images", "8")
    text = check_report(tmp_path, study, record)
    assert "drop" in text and "smooth" in text and record["pictures"] == 8
    CHECKS[study](record["results"])


@pytest.mark.parametrize("study", STUDIES)
def test_a_segmentation_network(study: str, room: Path, tmp_path: Path) -> None:
    images = "4" if study == "similarity" else "2"
    flags = ("--data", room / "stills", "--images", images)
    record = run(tmp_path, study, room / "still.safetensors", *flags)
    check_report(tmp_path, study, record)


def check_fourier(results: dict[str, Any]) -> None:
    modes = {(row["model"], row["mode"]) for row in results["rows"]}
    assert modes == {("drop", "dnn"), ("drop", "bnn"), ("smooth", "dnn")}
    by = {(row["unit"], row["map"]): row for row in results["rows"] if row["model"] == "smooth"}
    before, after = by["stage1.smooth", "in"], by["stage1.smooth", "out"]
    assert (before["height"], after["height"]) == (SIDE, SIDE + 1) and before["amplitude"][0] == 0.0
    assert after["amplitude"][12] < before["amplitude"][12]  # at 0.75 pi a blur takes away


def check_variance(results: dict[str, Any]) -> None:
    drop, smooth = ([row for row in results["rows"] if row["model"] == name] for name in ("drop", "smooth"))
    assert all(row["draws"] is None for row in smooth) and max(row["draws"] for row in drop) > 0
    late = [row for row in drop if row["unit"].startswith("stage4")]
    assert all(row["averaged"] <= row["positions"] and row["draws"] > 0 for row in late)


def check_hessian(results: dict[str, Any]) -> None:
    assert len(results["rows"]) == 2 * 4 and all(len(row["eigenvalues"]) == 2 for row in results["rows"])
    for row in results["rows"]:
        assert sum(row["weights"]) == pytest.approx(1.0) and len(row["nodes"]) <= 4
        assert max(row["nodes"]) <= 1.5 * max(map(abs, row["eigenvalues"])) + 1e-3  # few iterations
    assert all(0 <= row["nep"] <= 1 and "nep_l2" not in row for row in results["networks"])


def check_landscape(results: dict[str, Any]) -> None:
    for plane in results["planes"]:
        assert plane["loss"][1][1] == plane["centre_loss"] and plane["rows_done"] == 3
        assert plane["x"] == [-0.5, 0.0, 0.5] and math.isfinite(plane["end_rise"])


def check_lesion(results: dict[str, Any]) -> None:
    whole = [row for row in results["rows"] if not row["unit"]]
    assert len(whole) == 2 and all(row["nll_change"] == 0.0 for row in whole)
    smoothing = [row for row in results["rows"] if row["kind"] == "smoothing"]
    assert {row["weight"] for row in smoothing} == {0.75, 0.5, 0.25, 0.0} and len(smoothing) == 16
    assert any(abs(row["nll_change"]) > 0.01 for row in results["rows"])


def check_similarity(results: dict[str, Any]) -> None:
    names = {(pair["first"], pair["second"]) for pair in results["pairs"]}
    assert ("smooth", "smooth without smoothing") in names and ("drop", "smooth") in names and ("drop", "drop") in names
    own = next(pair["cka"] for pair in results["pairs"] if pair["first"] == pair["second"] == "drop")
    assert all(own[i][i] == pytest.approx(1.0) for i in range(len(own)))


def check_reliability(results: dict[str, Any]) -> None:
    rows = [row for row in results["rows"] if row["by"] == "all"]
    assert [(row["model"], row["mode"]) for row in rows] == [("drop", "dnn"), ("drop", "bnn x2"), ("smooth", "dnn")]
    shares = [row["share"] for row in results["rows"] if row["by"] == "class" and row["model"] == "smooth"]
    assert sum(shares) == pytest.approx(1.0)


CHECKS = {
    "fourier": check_fourier,
    "variance": check_variance,
    "hessian": check_hessian,
    "landscape": check_landscape,
    "lesion": check_lesion,
    "similarity": check_similarity,
    "reliability": check_reliability,
}


def test_the_landscapes_centre_is_the_loss_that_evaluate_measures(room: Path, tmp_path: Path) -> None:
    measured = tmp_path / "measured.json"
    model, data = str(room / "drop.safetensors"), str(room / "pictures")
    assert steadyseg(["evaluate", model, "--data", data, "--mode", "dnn", "--report", str(measured)]) == 0
    record = run(tmp_path, "landscape", model, "--data", data, "--config", "augmented=false")
    plane, known = record["results"]["planes"][0], json.loads(measured.read_text())
    expected = known["nll"] if "nll" in known else known["rows"][0]["nll"]
    assert plane["centre_loss"] == pytest.approx(expected, abs=1e-5)


def test_the_loss_is_looked_at_with_dropout_where_asked(room: Path, tmp_path: Path) -> None:
    """Both studies draw the masks of a mini-batch from one seed, so they see one loss."""

    def losses(out: str, *flags: str) -> list[float]:
        given = (str(room / "drop.safetensors"), "--data", str(room / "pictures"), "--split", "test", "--images", "6")
        settings = ("--config", "augmented=false", *flags)
        found = []
        for study, own in (("hessian", "batch_size=6 top=1 steps=2 iterations=2"), ("landscape", "points=3")):
            folder = tmp_path / out / study
            assert main([study, *given, "--output", str(folder), *settings, *own.split()]) == 0
            found.append(json.loads((folder / "report.json").read_text()))
        hessian, plane = (one["results"] for one in found)
        said = any("dropout on" in note for note in found[0]["notes"] + found[1]["notes"])
        assert said == bool(flags)
        return [hessian["networks"][0]["loss"], plane["planes"][0]["centre_loss"]]

    off, on = losses("off"), losses("on", "dropout=true")
    assert on[0] == pytest.approx(on[1], rel=1e-5) and off[0] == pytest.approx(off[1], rel=1e-5)
    assert abs(on[0] - off[0]) > 1e-3


def test_one_seed_repeats_and_another_does_not(room: Path, tmp_path: Path) -> None:
    def rows(out: str, *flags: str) -> Any:
        given = (room / "drop.safetensors", "--data", room / "pictures", "--images", "6", *flags)
        return run(tmp_path / out, "variance", *given)["results"]["rows"]

    first = rows("a")
    assert first == rows("b") and first != rows("c", "--config", "seed=1")


def test_any_timm_network_by_name(tmp_path: Path) -> None:
    data = save_pictures(tmp_path / "data", 2, 64)
    names = ("timm:vit_tiny_patch16_224", "timm:swin_tiny_patch4_window7_224")
    flags = ("--data", data, "--images", "2", "--config", "timm_weights=random")
    record = run(tmp_path / "f", "fourier", *names, *flags)
    found = {(row["model"], row["height"]) for row in record["results"]["rows"]}
    assert {("timm:vit_tiny_patch16_224", 14), ("timm:swin_tiny_patch4_window7_224", 56)} <= found
    lesion = run(tmp_path / "l", "lesion", names[0], *flags, "--config", "units=model.blocks.0.attn,model.blocks.1.mlp")
    kinds = [row["kind"] for row in lesion["results"]["rows"]]
    assert kinds == ["", "attention", "mlp"]


def test_time_that_is_over_leaves_what_was_measured(room: Path, tmp_path: Path) -> None:
    flags = ("--data", room / "pictures", "--images", "8", "--config", "max_seconds=0.001")
    record = run(tmp_path, "hessian", room / "drop.safetensors", *flags)
    assert {row["batch"] for row in record["results"]["rows"]} == {0}
    assert "mini-batches: 1 of 4 done when max_seconds=0.001 were over" in record["notes"]


@pytest.mark.parametrize(
    ("study", "flags", "words"),
    [
        ("fourier", ("--config", "units=stage9.0"), "drop has no unit 'stage9.0'; it has stem, stage1.0"),
        ("lesion", ("--config", "units=stage2.0"), "stage2.0 changes its map's shape or has none"),
        ("hessian", ("--split", "test", "--config", "top=5", "batch_size=99"), "fill no mini-batch of 99"),
        ("hessian", ("--split", "test", "--config", "top=1000000"), "weights; ask for fewer eigenvalues"),
        ("hessian", ("--split", "test", "--config", "steps=1000000000"), "GiB are free; ask for fewer"),
        ("landscape", ("--config", "points=4"), "--config points must be odd, 3 or more"),
        ("landscape", ("--config", "reach=0"), "reach must be more than 0"),
        ("fourier", ("--config", "max_seconds=nan"), "max_seconds must be more than 0, got nan"),
        ("variance", ("--config", "samples=0"), "--config samples must be 1 or more"),
        ("similarity", ("--images", "3"), "unbiased CKA needs 4 or more"),
        ("reliability", ("--output", "README.md"), "README.md is a file"),
    ],
)
def test_bad_input_of_a_study_is_one_line(study, flags, words, room, tmp_path, capsys):
    out = () if "--output" in flags else ("--output", tmp_path)
    line = one_line_error(capsys, study, room / "drop.safetensors", "--data", room / "pictures", *flags, *out, run=main)
    assert words in line


def test_models_and_data_that_do_not_fit_are_one_line(room, tmp_path, capsys):
    def refused(study: str, *words: str | Path) -> str:
        return one_line_error(capsys, study, *words, "--output", tmp_path, run=main)

    drop, still, pictures, stills = (room / n for n in ("drop.safetensors", "still.safetensors", "pictures", "stills"))
    assert "drop is an image classifier" in refused("lesion", drop, "--data", stills)
    assert "no such folder; expected test/ with images and testannot/" in refused("lesion", still, "--data", pictures)
    mixed = refused("fourier", drop, still, "--data", pictures)
    assert "testannot" in mixed or "one labels pictures, the other pixels" in mixed
    assert "timm has no network 'resnt18'" in refused("fourier", "timm:resnt18", "--data", pictures)
    six = save_classifier(tmp_path / "six.safetensors")
    assert "classes" in refused("reliability", six, "--data", pictures)


def test_maps_of_one_point_are_left_out_and_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = save_classifier(
        tmp_path / "vgg.safetensors", ClassifierOptions(network="vgg11", channels=4, head="gap"), size=17
    )
    data = save_pictures(tmp_path / "data", 1, 17)
    flags = (model, "--data", data, "--output", tmp_path / "again")
    record = run(tmp_path / "out", "fourier", model, "--data", data)
    assert "left out, as a side of the map is below 2: stage5.1 (1x1)" in " ".join(record["notes"])
    assert {row["height"] for row in record["results"]["rows"]} == {17, 8, 4, 2}  # odd ones too
    capsys.readouterr()
    line = one_line_error(capsys, "fourier", *flags, "--config", "units=stage5.1", run=main)
    assert "stage5.1 (1x1): a map with a side below 2 cannot be analyzed" in line
