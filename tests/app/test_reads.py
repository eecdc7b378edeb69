"""Each command reads the whole file of a checkpoint once."""

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made.classifier import save_classifier, save_likely_pictures
from made.pictures import street_drive

from steadyseg.app.cli import main
from steadyseg.app.in_browser import site as site_writer
from steadyseg.app.in_browser.runtime import cache_path
from steadyseg.classification.options import ClassifierOptions
from steadyseg.seg.pretrained import read_segmenter

SIZE = 64, 96


class CountedFile:
    """A file that adds the bytes that are read from it to `counts`, by name."""

    def __init__(self, file: Any, name: str, counts: dict[str, int]) -> None:
        self.file, self.name_of_file, self.counts = file, name, counts

    def read(self, *size: int) -> bytes:
        data: bytes = self.file.read(*size)
        self.counts[self.name_of_file] = self.counts.get(self.name_of_file, 0) + len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> "CountedFile":
        self.file.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.file.__exit__(*error)


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], int]:
    """Returns how often all bytes of a file were read since the test began; headers alone do not count."""
    counts: dict[str, int] = {}
    opened = io.open

    def counting(file: Any, mode: str = "r", *options: Any, **named: Any) -> Any:
        made = opened(file, mode, *options, **named)
        return CountedFile(made, str(file), counts) if str(file).endswith(".safetensors") and "r" in mode else made

    monkeypatch.setattr(io, "open", counting)
    return lambda path: counts.get(str(path), 0) // path.stat().st_size


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of the street's network at a small size, and beside it `data`, a drive to fit familiarity on."""
    folder = tmp_path_factory.mktemp("street")
    (folder / "data").symlink_to(street_drive(SIZE))
    model = read_segmenter("street-tiny")
    path = folder / "small.safetensors"
    model.with_record(dataclasses.replace(model.meta, height=SIZE[0], width=SIZE[1])).save(path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        "video {data}/test --model {model} -o {out}/v.mp4",
        "video {data}/test --model {model} --backend torch",
        "evaluate {model} --data {data} --mode dnn",
        pytest.param(
            "evaluate {model} --data {data} --mode dnn --backend openvino --precision int8", marks=pytest.mark.long
        ),
        pytest.param(
            "calibrate {model} --data {data} --mode vq-dnn --motion off --familiarity --int8 -o {out}/c.safetensors",
            marks=pytest.mark.long,
        ),
        pytest.param("export {model} -o {out}/m.onnx", marks=pytest.mark.long),
        pytest.param("export {model} --target web -o {out}/site", marks=pytest.mark.long),
    ],
    ids=["video", "video torch", "evaluate", "evaluate int8", "calibrate", "export", "export web"],
)
@pytest.mark.slow
def test_a_segmentation_checkpoint_is_read_once(street, tmp_path, words, whole_reads, monkeypatch):
    if "--target web" in words and not cache_path().is_file():
        pytest.skip(
            f"onnxruntime-web is not kept here ({cache_path()}): python -m steadyseg.app.in_browser.runtime fetches it"
        )
    monkeypatch.setattr(site_writer, "SAMPLE_SECONDS", 1)
    model = street
    if "--precision int8" in words:
        model = tmp_path / "int8.safetensors"
        calibrated = read_segmenter(street)
        ranges = {"head": (0.0, 4.0)}
        record = {"ranges": ranges, "accuracy": (0.9, 0.9), "ece": (0.0, 0.0), "labels_equal": 1.0}
        calibrated.with_record(dataclasses.replace(calibrated.meta, int8=record | {"temperature_ratio": 1.1})).save(
            model
        )
    before = whole_reads(model)
    assert main(words.format(model=model, data=street.parent / "data", out=tmp_path).split()) == 0
    assert whole_reads(model) - before == 1


@pytest.mark.parametrize(
    "words",
    [
        "evaluate {model} --data {data}",
        "calibrate {model} --data {data} --split test -o {out}/c.safetensors",
        pytest.param("export {model} -o {out}/m.onnx", marks=pytest.mark.long),
    ],
    ids=["evaluate", "calibrate", "export"],
)
def test_a_classifier_is_read_once(tmp_path: Path, words: str, whole_reads: Callable[[Path], int]) -> None:
    model = save_classifier(tmp_path / "model.safetensors", ClassifierOptions(channels=4))
    data = save_likely_pictures(tmp_path / "data", model)
    before = whole_reads(model)
    assert main(words.format(model=model, data=data, out=tmp_path).split()) == 0
    assert whole_reads(model) - before == 1
