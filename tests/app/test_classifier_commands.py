"""`evaluate`, `calibrate` and `models` on image classifiers: what they report and what they refuse."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made.classifier import ANIMALS, save_classifier, save_likely_pictures, save_pictures
from PIL import Image
from refusals import error_after_work, one_line_error

from steadyseg.app.cli import main
from steadyseg.app.evaluation.data import default_split
from steadyseg.classification.networks.layout import MODELS
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import find_classifier, read_classifier
from steadyseg.core.model.checkpoint import load_checkpoint, read_meta

FIGURES = ("nll", "accuracy", "top_5_accuracy", "ece", "ece_15", "ece_signed", "brier", "acc_90", "freq_90", "aurc")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pictures(tmp_path_factory.mktemp("data") / "animals", per_class=8)


@pytest.fixture(scope="module")
def mc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("mc") / "mc.safetensors")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("plain") / "plain.safetensors", ClassifierOptions(channels=4))


@pytest.fixture(scope="module")
def likely(mc: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_likely_pictures(tmp_path_factory.mktemp("likely") / "likely", mc)


@pytest.fixture(scope="module")
def calibrated(mc: Path, likely: Path) -> Path:
    path = mc.with_name("calibrated.safetensors")
    flags = ["--split", "train", "--samples", "3", "-o", str(path)]
    assert main(["calibrate", str(mc), "--data", str(likely), *flags]) == 0
    return path


def evaluated(model: Path, data: Path, folder: Path, *flags: str) -> dict[str, Any]:
    path = folder / f"{len(list(folder.iterdir()))}.json"
    assert main(["evaluate", str(model), "--data", str(data), "--report", str(path), "--overwrite", *flags]) == 0
    return json.loads(path.read_text())


@pytest.mark.slow
def test_one_pass_over_the_data_gives_every_ensemble_size(mc, data, tmp_path, capsys):
    result = evaluated(mc, data, tmp_path, "--samples", "6")
    assert (result["mode"], result["samples"], result["frames"]) == ("bnn", 6, 48)
    assert (result["data"], result["split"], len(result["frame_list_hash"])) == ("animals", "test", 12)
    sizes = [("dnn", 0), *(("bnn", n) for n in range(1, 7))]
    assert [(row["mode"], row["n"]) for row in result["rows"]] == sizes
    assert [point["n"] for point in result["curve"]] == [1, 2, 3, 4, 5, 6]
    assert all(result[key] == result["rows"][-1][key] for key in FIGURES)
    assert result["curve"][-1]["nll"] == pytest.approx(result["nll"]) and result["disagreement"] > 0
    assert sum(result["class_images"]) == 48 and result["class_names"] == list(ANIMALS)
    assert sum(result["class_accuracy"]) / 6 == pytest.approx(result["accuracy"])  # as many of every class
    shown = capsys.readouterr().out
    assert "mc.safetensors, animals test, 48 images, MC dropout (bnn x6)" in shown and f"{result['nll']:.4f}" in shown


@pytest.mark.slow
def test_seed_mode_and_members_are_heard(mc: Path, plain: Path, data: Path, tmp_path: Path) -> None:
    """tests/classification/test_evaluate.py has what they mean."""
    first, other = (evaluated(mc, data, tmp_path, "--samples", "2", "--seed", seed) for seed in ("0", "1"))
    assert other["nll"] != first["nll"]
    off = evaluated(mc, data, tmp_path, "--mode", "dnn")
    assert (off["mode"], off["samples"], off["rows"]) == ("dnn", 1, first["rows"][:1])
    assert evaluated(mc, data, tmp_path, "--mode", "bnn", "--samples", "2")["rows"] == first["rows"][1:]
    alone = evaluated(plain, data, tmp_path)
    assert (alone["mode"], alone["samples"], [row["n"] for row in alone["rows"]]) == ("dnn", 1, [1])
    member = save_classifier(tmp_path / "other.safetensors", ClassifierOptions(channels=4), seed=1)
    both = evaluated(plain, data, tmp_path, "--members", str(member))
    assert both["members"] == ["other.safetensors"] and [row["n"] for row in both["rows"]] == [1, 2]
    assert both["rows"][0]["nll"] == alone["nll"] and both["disagreement"] > 0


@pytest.mark.slow
def test_both_modes_are_fitted_and_used_where_they_are(calibrated, mc, likely, tmp_path, capsys):
    fitted = read_meta(calibrated).calibration
    assert {name: record["samples"] for name, record in fitted.items()} == {"dnn": 1, "bnn x3": 3}
    assert all((r["data"], r["split"], r["frames"]) == ("likely", "train", 120) for r in fitted.values())
    before, after = load_checkpoint(mc)[0], load_checkpoint(calibrated)[0]
    assert all((before[name] == after[name]).all() for name in before)
    capsys.readouterr()
    used = evaluated(calibrated, likely, tmp_path, "--split", "train", "--samples", "3")
    assert "fitted on this split" in capsys.readouterr().err
    assert used["temperatures"] == {record["mode"]: record["temperature"] for record in fitted.values()}
    assert used["nll"] == pytest.approx(fitted["bnn x3"]["nll_after"], rel=1e-5)
    assert used["rows"][0]["nll"] == pytest.approx(fitted["dnn"]["nll_after"], rel=1e-5)
    assert used["fitted_on"] == {key: fitted["bnn x3"][key] for key in ("data", "split", "frame_list_hash")}
    assert used["conformal"]["lac"]["coverage"] >= 0.9 and 1 <= used["conformal"]["lac"]["set_size"] <= 6
    off = evaluated(calibrated, likely, tmp_path, "--samples", "3", "--calibrated", "off")
    assert off["nll"] == evaluated(mc, likely, tmp_path, "--samples", "3")["nll"] and "conformal" not in off
    assert "fitted on this split" not in capsys.readouterr().err


def test_pretrained_networks_and_all_networks_to_train_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "smoothed (vq-dnn)" in out and "negative log-likelihood (nll)" in out
    rows = {words[0]: words[1:] for words in map(str.split, out.splitlines()) if words}
    smooth = read_meta(find_classifier("cifar10-resnet18-mc-smooth")).metrics["stills-dnn"]
    shown = ["cifar10", f"{smooth['accuracy']:.3f}", f"{smooth['nll']:.3f}", "dnn,", "bnn"]
    assert rows["cifar10-resnet18-mc-smooth"][3:] == shown
    assert rows["street-tiny"][3] == "street" and rows["street-mobile"][3] == "camvid"
    assert set(MODELS) | {"camvid-unet-s", "segnet", "timm:NAME"} <= set(out.split())


@pytest.mark.parametrize(
    ("files", "split"),
    [(("train.zip", "val.zip", "test.zip"), "test"), (("train.zip", "val.zip"), "val"), (("train.zip",), "held-out")],
)
def test_the_default_split_is_found_in_archives_too(tmp_path: Path, files: tuple[str, ...], split: str) -> None:
    model = read_classifier(save_classifier(tmp_path / "m.safetensors", training={"held_out": 3}))
    for name in files:
        (tmp_path / name).touch()
    assert default_split(tmp_path, model) == split


REFUSED: list[tuple[str, str]] = [
    ("video street --model cifar10-resnet18-plain", "-plain: an image classifier, which segments nothing; steadyseg"),
    ("bench {mc}", "mc.safetensors: an image classifier, which segments nothing; steadyseg evaluate measures it"),
    ("demo {mc}", "mc.safetensors: an image classifier"),
    ("evaluate {mc} --protocol stream", "--protocol stream is for segmentation networks"),
    ("evaluate {mc} --tau 2", "--tau is for"),
    ("evaluate {mc} --every 2", "--every is for"),
    ("evaluate {mc} --only list.txt", "--only is for"),
    ("evaluate {mc} --config size=96", "--config size is for"),
    ("evaluate {mc} --precision bf16", "--precision bf16 is for"),
    ("evaluate {mc} --calibrated on", "no temperature was fitted for dnn"),
    ("evaluate {mc} --backend openvino", "-o c.onnx"),
    ("evaluate {mc} --split val", "no split 'val'"),
    ("evaluate {mc} --report r.txt", "a report is a .json file"),
    ("evaluate {mc} --members street-tiny", "a segmentation network"),
    ("evaluate camvid-unet", "did you mean camvid-unet-s?"),
    ("calibrate {mc} -o {out} --split train --protocol stream", "--protocol stream is for"),
    ("calibrate {mc} -o {out} --split train --risk-class cat", "--risk-class is for"),
    ("calibrate {mc} -o {out} --split train --logit-adjustment", "--logit-adjustment is for"),
    ("calibrate {mc} -o {out} --split train --int8", "--int8 is for"),
    ("calibrate {mc} -o {out} --split train --coverage 1", "between 0 and 1"),
    ("calibrate {mc} -o {out} --split train --familiarity", "not trained on"),
    ("calibrate {mc} -o {out} --split test --familiarity --mode bnn", "without dropout"),
    ("export {mc} -o {out} --stateful", "--stateful is for segmentation"),
    ("export {mc} -o {out} --tau 1.25", "--tau is for"),
    ("export {mc} -o {out} --precision fp16", "exported in fp32"),
    ("export {mc} -o {out} --precision bf16", "no number format"),
    ("export {mc} -o {out} --mode vq-dnn", "use mode dnn or bnn"),
    ("export {mc} -o {out} --mode dnn --samples 3", "use mode bnn"),
    ("export {mc} -o {out} --calibrated on", "no temperature was fitted for dnn"),
    ("export {plain} -o {out} --mode bnn", "no dropout"),
    ("export {plain} -o {out} --samples 5", "no dropout"),
]


@pytest.mark.parametrize(("command", "words"), REFUSED)
def test_what_a_classifier_cannot_do_is_one_line(mc, plain, data, tmp_path, capsys, command, words):
    given = command.format(mc=mc, plain=plain, out=tmp_path / ("c.onnx" if "export" in command else "c.safetensors"))
    more = ("--data", data) if command.startswith(("evaluate", "calibrate")) else ()
    assert words in one_line_error(capsys, *given.split(), *more)
    assert not list(tmp_path.iterdir())


def test_data_that_do_not_fit_the_network_are_one_line(mc, data, tmp_path, capsys):
    fewer = save_pictures(tmp_path / "fewer", 1, names=ANIMALS[:4])
    line = one_line_error(capsys, "evaluate", mc, "--data", fewer)
    assert "4 classes (cat, dog, eel, ...)" in line and "has 6" in line
    deep = save_pictures(tmp_path / "deep", 1)
    Image.fromarray(np.zeros((40, 40), np.uint16)).save(deep / "test" / "dog" / "0.png")
    line = error_after_work(capsys, "evaluate", mc, "--data", deep, "--samples", "1")
    assert "dog/0.png: cannot be read" in line and "a picture of mode I;16; expected 8 bits" in line
    tiny = save_classifier(tmp_path / "t.safetensors", ClassifierOptions(network="vgg11", channels=2), size=8)
    assert "too small for this network" in error_after_work(capsys, "evaluate", tiny, "--data", data)
