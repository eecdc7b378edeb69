"""`steadyseg batch` by real processes: what it makes is what `steadyseg video` makes, and a broken video is a row."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made.batches import table
from made.video import write_video
from PIL import Image
from refusals import error_after_work, one_line_error, refusal

from steadyseg.app.cli import main
from steadyseg.app.scale.batch.clips import find_clips
from steadyseg.app.scale.batch.command import only_driver_of, print_summary
from steadyseg.app.scale.batch.results import Segmenters, make_results, read_results
from steadyseg.app.scale.batch.task import BatchTask, Row
from steadyseg.app.scale.engines.machine import workers_that_fit
from steadyseg.app.video.flags import VideoOptions
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.runtime.options import ComputeOptions


def drive(path: Path, seed: int, frames: int = 6) -> Path:
    """A few frames of noise that wanders, so that no two videos have the same masks."""
    noise = np.random.default_rng(seed).integers(0, 255, (96, 128 + frames, 3), np.uint8)
    return write_video(path, [np.ascontiguousarray(noise[:, i : i + 128]) for i in range(frames)])


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three videos."""
    folder = tmp_path_factory.mktemp("videos")
    for seed in range(3):
        drive(folder / f"drive{seed}.mp4", seed)
    return folder


def test_folders_patterns_and_lists_name_videos(videos: Path, tmp_path: Path) -> None:
    def named(*sources: object) -> list[str]:
        return [clip.name for clip in find_clips(tuple(map(str, sources)))]

    in_order = ["drive0", "drive1", "drive2"]
    assert named(videos) == in_order and named(videos / "*.mp4") == in_order
    assert named(videos / "drive2.mp4", "street:7:5") == ["drive2", "street-7-5"]
    listed = f"# two\n{videos}/drive1.mp4\n\n{os.path.relpath(videos, tmp_path)}/drive0.mp4\n"
    (tmp_path / "list.txt").write_text(listed)
    assert named(tmp_path / "list.txt") == ["drive1", "drive0"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("gone.mp4\n", "line 1: no such file or folder"),
        ("\n# none\n", "names no video"),
        ("no*.mp4\n", "line 1: nothing matches"),
        ("rtsp://me:secret@host/s\n", "steadyseg video"),
        ("street\nstreet\n", "would both become 'street'"),
    ],
)
def test_lists_that_name_no_batch_are_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    line = refusal(find_clips, (str(tmp_path / "a.txt"),))
    assert said in line and "secret" not in line


@pytest.mark.slow
def test_a_batch_makes_what_video_makes_skips_it_and_names_what_broke(videos, model, tmp_path, capsys):
    out, flags = tmp_path / "out", ["--model", model, "--backend", "torch"]
    (tmp_path / "broken.mp4").write_bytes(b"no video at all")
    rest = ["-o", out, "--masks", "--videos", *flags]
    line = error_after_work(capsys, "batch", videos, tmp_path / "broken.mp4", *rest, code=1)
    assert line.endswith(f"1 of 4 videos failed; {out / 'summary.json'} says why")
    assert sorted(os.listdir(out)) == [".lock", "drive0", "drive1", "drive2", "summary.json"]
    summary = json.loads((out / "summary.json").read_text())
    states = {row["name"]: row["state"] for row in summary["videos"]}
    assert states == {"broken": "failed"} | dict.fromkeys(("drive0", "drive1", "drive2"), "done")
    broken = summary["videos"][0]
    assert "not a readable video" in broken["reason"] and broken["tries"] == 1 and summary["frames"] == 18

    alone = tmp_path / "masks"
    assert main([str(word) for word in ("video", videos / "drive1.mp4", "--masks", alone, *flags)]) == 0
    assert {path.name: path.read_bytes() for path in alone.iterdir()} == {
        path.name: path.read_bytes() for path in (out / "drive1" / "masks").iterdir()
    }
    rows = table(out / "drive1" / "frames.csv")
    assert [row["frame"] for row in rows] == list("012345")
    report = json.loads((out / "drive1" / "report.json").read_text())
    assert np.mean([float(row["entropy"]) for row in rows]) == pytest.approx(report["mean_entropy"], abs=1e-4)
    shares = {name: np.mean([float(row[name]) for row in rows]) for name in CAMVID.names}
    assert shares == pytest.approx(report["class_shares"], abs=1e-3)

    made = (out / "drive0" / "report.json").stat().st_mtime_ns
    capsys.readouterr()
    assert main([str(word) for word in ("batch", videos, *rest)]) == 0
    assert "an estimate" in capsys.readouterr().out
    assert (out / "drive0" / "report.json").stat().st_mtime_ns == made
    summary = json.loads((out / "summary.json").read_text())
    assert summary["skipped"] == 3 and "estimate" in summary["caveat"]
    assert "was made with mode None, not dnn" in one_line_error(capsys, "batch", videos, *rest, "--mode", "dnn")
    assert "was made with masks True, not False" in one_line_error(
        capsys, "batch", videos, "-o", out, "--videos", *flags
    )


def raw_video(path: Path, shade: int) -> Path:
    """Two grey frames, uncompressed: files of equal length whatever they show."""
    path.parent.mkdir(exist_ok=True)
    header = b"YUV4MPEG2 W64 H48 F25:1 C420\n"
    path.write_bytes(header + 2 * (b"FRAME\n" + bytes([shade]) * (64 * 48) + bytes([128]) * (64 * 48 // 2)))
    return path


Look = Callable[[Path], dict[str, Any] | None]


@pytest.fixture
def look(tmp_path: Path, model: str) -> Look:
    """Makes the results of a source, or reads the results that are there."""
    options = VideoOptions(model=model, compute=ComputeOptions(backend="torch"))
    task = BatchTask(tmp_path / "out", options=options)
    segmenters = Segmenters(task)
    task.folder.mkdir()

    def look_at(source: Path) -> dict[str, Any] | None:
        (clip,) = find_clips((str(source),))
        return read_results(clip, task) or make_results(clip, task, segmenters.take(clip), lambda: None)

    return look_at


def test_results_of_another_video_of_the_same_name_are_refused_and_both_are_named(tmp_path: Path, look: Look) -> None:
    monday, tuesday = (
        raw_video(tmp_path / day / "cam1.y4m", shade) for day, shade in (("monday", 80), ("tuesday", 90))
    )
    made = look(monday)
    assert made and (look(monday) or {})["frames"] == made["frames"] == 2
    assert f"was made with source {monday}, not {tuesday}" in refusal(look, tuesday)
    os.utime(raw_video(monday, 100), (1, 1))
    assert f"was made with other content of {monday}" in refusal(look, monday)
    (tmp_path / "out" / "cam1" / "report.json").unlink()
    assert "holds no results of a batch" in refusal(look, monday)


def test_images_that_changed_are_another_source(tmp_path: Path, look: Look) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number in range(2):
        Image.fromarray(np.full((48, 64), number, np.uint8)).save(images / f"{number}.png")
    look(images)
    os.utime(images / "1.png", (1, 1))
    assert f"other content of {images}" in refusal(look, images)


def test_a_name_that_is_no_text_becomes_one(tmp_path: Path, look: Look) -> None:
    """Tables of results are in UTF-8; such a video failed after three tries."""
    look(
        write_video(tmp_path / "b.mp4", [np.zeros((48, 64, 3), np.uint8)] * 2).rename(
            tmp_path / os.fsdecode(b"b\xe9.mp4")
        )
    )
    assert (tmp_path / "out" / "b?" / "report.json").is_file()


def test_workers_are_as_many_as_the_cores_and_the_memory_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = "steadyseg.app.scale.engines.machine."
    monkeypatch.setattr(f"{machine}usable_cores", lambda: 6)
    monkeypatch.setattr(f"{machine}CGROUPS", tmp_path)
    for limit, fit in ((5 * 2**30, 3), (2**20, 1)):
        (tmp_path / "memory.max").write_text(str(limit))
        assert workers_that_fit() == fit


def test_drivers_of_one_folder_exclude_each_other(tmp_path: Path) -> None:
    with (
        only_driver_of(tmp_path),
        pytest.raises(InputError, match="another batch writes into it now"),
        only_driver_of(tmp_path),
    ):
        pass
    with only_driver_of(tmp_path):
        pass


def test_names_that_look_like_markup_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[/b][red]a:car:"
    print_summary([Row(name, name, reason=f"{name}: gone", tries=2), Row("b", "b", reason=300 * "x")], 2, 1.0)
    shown = capsys.readouterr().out
    assert shown.count(name) == 2 and shown.count("x") >= 300


def test_only_an_estimate_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    for caveat in ("", "an estimate"):
        print_summary([Row("a", "a", verdict="a verdict", caveat=caveat)], 1, 1.0)
        assert ("an estimate" in capsys.readouterr().out) == bool(caveat)
