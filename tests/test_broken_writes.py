"""Writes that a kill (-9) or the operating system ends: what was there is whole, and the next run works.

Trainings (tests/seg/test_train_resume.py) and downloads (tests/seg/test_camvid_download.py) have tests of their own.
"""

import json
import multiprocessing
import os
import resource
import signal
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from made.waiting import PATIENCE_S

from steadyseg.app.report_file import write_json
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.core.model.checkpoint import load_checkpoint, read_meta, save_checkpoint
from steadyseg.export.write.traced import write_model
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.studies.harness.study import Cache

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the killed processes are forks of this one")
OLD, NEW = 1, 2


def save(path: Path, number: int) -> None:
    meta = read_meta(find_checkpoint("street-tiny"))
    save_checkpoint(path, {"number": torch.full((10_000,), float(number))}, meta)


def saved(path: Path) -> float:
    return load_checkpoint(path)[0]["number"].unique().item()


def export(path: Path, number: int) -> None:
    """A tensor instead of a graph: the way to the disk is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steadyseg.export.write.traced.check_onnx", lambda *_: None)
        write_model(onnx.numpy_helper.from_array(np.full(10_000, number)), path, overwrite=True)


def exported(path: Path) -> int:
    tensor = onnx.TensorProto.FromString(path.read_bytes())
    return np.unique(onnx.numpy_helper.to_array(tensor)).item()


def keep(path: Path, number: int) -> None:
    Cache(path).put("job", "digest", {"number": number}, {})


def kept(path: Path) -> int:
    found = Cache(path).get("job", "digest")
    assert found is not None
    return found["number"]


def report(path: Path, number: int) -> None:
    write_json(path, {"number": number})


def reported(path: Path) -> int:
    return json.loads(path.read_text())["number"]


def film(path: Path, number: int) -> None:
    """As many frames as the number says, tenfold."""
    with VideoSink(path, 64, 48, 25.0, overwrite=True) as sink:
        for index in range(10 * number):
            sink.write(np.full((48, 64, 3), index, np.uint8), index / 25)


def filmed(path: Path) -> int:
    with open_source(str(path)) as source:
        return len(list(source)) // 10


def kill_me(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


WRITERS = [
    ("model.safetensors", save, saved),
    ("model.onnx", export, exported),
    ("results.json", keep, kept),
    ("report.json", report, reported),
    ("out.mp4", film, filmed),
]
every_writer = pytest.mark.parametrize(("name", "write", "read"), WRITERS)


@every_writer
def test_what_was_there_is_whole_after_a_kill_and_the_next_run_works(tmp_path, monkeypatch, name, write, read):
    """The kill falls on what was written, and on the last step before it counts."""
    path = tmp_path / name
    for moment in ((VideoSink, "_check_room") if write is film else (os, "fsync"), (os, "replace")):
        write(path, OLD)
        with monkeypatch.context() as patch:
            patch.setattr(*moment, kill_me)
            killed = multiprocessing.get_context("fork").Process(target=write, args=(path, NEW))
            killed.start()
            killed.join(PATIENCE_S)
        assert killed.exitcode == -signal.SIGKILL and len(list(tmp_path.glob(f".{name}.*"))) > 0
        assert read(path) == OLD
        write(path, NEW)
        assert read(path) == NEW
    if name == "out.mp4":  # a video's can have any size
        assert os.listdir(tmp_path) == [name]


@every_writer
def test_what_was_there_is_whole_where_a_file_may_not_grow(tmp_path, name, write, read):
    """The operating system refuses the write half-way, as a full disk does, and needs no small file system for it."""
    path, limits = tmp_path / name, resource.getrlimit(resource.RLIMIT_FSIZE)
    write(path, OLD)
    before = os.listdir(tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write(path, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(path) and read(path) == OLD and os.listdir(tmp_path) == before


def test_the_video_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    with VideoSink(tmp_path / "out.mp4", 64, 48, 25.0, overwrite=True) as sink:
        sink.write(np.zeros((48, 64, 3), np.uint8), 0.0)
        other = multiprocessing.get_context("fork").Process(target=film, args=(tmp_path / "out.mp4", NEW))
        other.start()
        other.join(PATIENCE_S)
        assert other.exitcode == 0 and filmed(tmp_path / "out.mp4") == NEW
    assert len(os.listdir(tmp_path)) == 1 and filmed(tmp_path / "out.mp4") == 0
