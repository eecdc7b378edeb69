"""int8 from the command that fits it to the backend that runs it."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from made.methods import opened, opened_by_torch
from made.pictures import street_folder
from refusals import one_line_error

import steadyseg.runtime.number_format
import steadyseg.runtime.open_file
from steadyseg.app.cli import main
from steadyseg.core.evaluation.temperature import GRID
from steadyseg.core.frame import Frame
from steadyseg.core.model.checkpoint import load_checkpoint, save_checkpoint
from steadyseg.core.model.tensor_file import INT8_PREFIX, below
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.seg.calibrate import fit_temperature
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.street.drive import StreetSet

SIZE = 64, 96

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return street_folder(tmp_path_factory.mktemp("data"), {"train": range(6), "val": (6, 7)}, SIZE)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> str:
    path = tmp_path_factory.mktemp("small") / "s.safetensors"
    flags = ["--data", str(pictures), "--mode", "dnn", "--protocol", "stills", "--int8", "-o", str(path)]
    assert main(["calibrate", "street-tiny", *flags]) == 0
    return str(path)


def frames() -> list[Frame]:
    street = StreetSet(12, *SIZE)
    return [Frame(street[number][0], place, place / 15) for place, number in enumerate((8, 9, 10, 11))]


@pytest.mark.parametrize(
    "method", [pytest.param({"mode": "dnn"}, marks=pytest.mark.long), {"mode": "vq-dnn", "motion": False}], ids=str
)
def test_openvino_computes_what_the_record_measured(small: str, method: dict[str, object]) -> None:
    full = opened_by_torch(small, **method)
    tensors, meta = load_checkpoint(Path(small))
    by_torch = full.rounded(meta.int8["ranges"], below(tensors, INT8_PREFIX))
    by_openvino = opened(small, **method, backend="openvino", precision="int8")
    assert by_openvino.backend.endswith("int8")
    equal, differs = [], []
    for frame in frames():
        first, second = by_torch.step(frame), by_openvino.step(frame)
        equal.append((first.label == second.label).mean())
        assert np.abs(first.confidence.astype(int) - second.confidence).mean() < 2
        differs.append((full.step(frame).confidence != second.confidence).mean())
    assert np.mean(equal) > 0.995 and np.mean(differs) > 0.05, (equal, differs)


def test_it_has_a_temperature_of_its_own(small: str) -> None:
    tensors, meta = load_checkpoint(Path(small))
    ratio, fitted = meta.int8["temperature_ratio"], meta.calibration["dnn"]["temperature"]
    full = opened_by_torch(small, mode="dnn")
    pictures = [
        Frame(image, number, 0.0, label)
        for number, (image, label) in enumerate(map(StreetSet(12, *SIZE).__getitem__, (6, 7)))
    ]
    both = [
        fit_temperature(one.module, pictures, full.classes).temperature
        for one in (full, full.rounded(meta.int8["ranges"], below(tensors, INT8_PREFIX)))
    ]
    assert ratio == pytest.approx(both[1] / both[0], abs=1e-3)
    assert opened(small, mode="dnn", precision="int8").method.temperature == fitted * ratio
    assert opened(small, mode="dnn", precision="fp32").method.temperature == fitted


def test_a_temperature_beyond_the_usual_ones_is_fitted_too(pictures: Path, tmp_path: Path) -> None:
    tensors, meta = load_checkpoint(find_checkpoint("street-tiny"))
    sharp = {name: tensor * 8 if name.startswith("head.") else tensor for name, tensor in tensors.items()}
    given, found = (tmp_path / f"{name}.safetensors" for name in ("given", "found"))
    save_checkpoint(given, sharp, meta)
    flags = ["--data", str(pictures), "--mode", "dnn", "--protocol", "stills", "--int8", "-o", str(found)]
    assert main(["calibrate", str(given), *flags]) == 0
    fitted = load_checkpoint(found)[1]
    assert fitted.calibration["dnn"]["temperature"] > GRID[-1] and 0.8 < fitted.int8["temperature_ratio"] < 1.2


@pytest.mark.parametrize("samples", [1, pytest.param(3, marks=pytest.mark.long)])
def test_dropout_passes_run_in_it_too(samples: int) -> None:
    frame = Frame(StreetSet(1, 180, 240)[0][0], 0, 0.0)  # of a shape whose graphs ship
    segmenter = opened("road-mobile", mode="bnn", samples=samples, backend="openvino", precision="int8")
    maps = segmenter.step(frame)
    full = opened("road-mobile", mode="dnn", backend="openvino", precision="fp32").step(frame)
    assert (maps.label == full.label).mean() > 0.9 and (maps.disagreement.max() > 0) == (samples > 1)


def test_auto_takes_it_where_bf16_is_slower_or_absent_and_the_loss_is_small(small, tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYSEG_CACHE", str(tmp_path / "steadyseg"))
    monkeypatch.setattr(steadyseg.runtime.number_format, "network_alone", lambda model, number: number)
    tensors, meta = load_checkpoint(Path(small))
    lossy = tmp_path / "lossy.safetensors"
    save_checkpoint(lossy, tensors, dataclasses.replace(meta, int8=meta.int8 | {"accuracy": [0.9, 0.8]}))
    cases = [
        (5.0, small, "bf16", "bf16 5.0 ms, int8 6.0 ms a frame here"),
        (9.0, small, "int8", "int8: bf16 9.0 ms, int8 6.0 ms a frame here, and "),
        (9.0, str(lossy), "bf16", "this processor computes in bf16"),
        (None, small, "int8", "int8: this processor has no bf16, and "),
        (None, str(lossy), "fp32", "this processor has no bf16"),
    ]
    for bf16_ms, model, number, why in cases:
        times = {"bf16": bf16_ms, "int8": 6.0}
        monkeypatch.setattr(steadyseg.runtime.number_format, "time_formats", lambda networks, frame, times=times: times)
        monkeypatch.setattr(
            steadyseg.runtime.number_format, "cpu_has_bf16", lambda bf16_ms=bf16_ms: bf16_ms is not None
        )
        monkeypatch.setattr(steadyseg.runtime.number_format, "MEASURED", {})
        shutil.rmtree(tmp_path / "steadyseg", ignore_errors=True)
        segmenter = open_segmenter(model)
        assert segmenter.backend.split()[-1] == number and why in segmenter.why, (number, segmenter.why)


def test_it_is_fitted_without_dropout(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--int8", "--data", pictures, "--mode", "bnn", "-o", tmp_path / "x.safetensors"]
    assert "--mode dnn" in one_line_error(capsys, "calibrate", "street-tiny", *flags)
