"""The results of one video, and the segmenters that make them. The folder is complete or absent, even if the process is
killed, and has a record of the files that were read."""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from steadyseg.app.report_file import write_json
from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.task import BatchTask
from steadyseg.app.sources.image_folder import list_images
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import Recent, job_record, needs_probs, open_for, open_recording
from steadyseg.app.video.report import FrameFigures
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.method import draws_dropout
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.files import read_small, whole_folder
from steadyseg.core.system.json_text import parse_json
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.open_model import find_model, is_graph

REPORT, VIDEO, MASKS = "report.json", "video.mp4", "masks"
VERSION = "3"
"""Version of the columns and their meaning, stored in the report of a batch's video as `frames_version`."""
COLUMNS = (
    *("video", "frame", "time_s", "confidence", "entropy", "disagreement"),
    *("familiarity", "expected_accuracy", "verdict", "wall_ms"),
)


class Segmenters:
    """The segmenter of a batch in one process, which serves one video at a time. Opening takes seconds, longer than a
    short video."""

    def __init__(self, task: BatchTask) -> None:
        self._task, self._open, self._compiled = task, list[Segmenter](), Recent[FrameNetwork]()

    def take(self, clip: Clip) -> Segmenter:
        """A segmenter in its initial state, for a new stream. InputError for options that the model cannot fulfil."""
        job = VideoJob(clip.source, options=self._task.options)
        if self._open and draws_dropout(self._open[0].method.mode):  # only a new one draws the seed's first masks
            self._open.clear()
            self._compiled.clear()
        if not self._open:
            self._open.append(open_for(job, take=self._compiled.take))
        (segmenter,) = self._open
        segmenter.reset()
        segmenter.resets.clear()
        segmenter.clock.samples.clear()
        segmenter.keep_probs = needs_probs(job)
        return segmenter


class FrameTable(AbstractContextManager["FrameTable"]):
    """A context manager that writes the figures of every frame into `frames.csv`, and a share of the pixels for each
    class. Times are in seconds, all else are shares; only the column `wall_ms` differs from run to run."""

    def __init__(self, folder: Path, video: str, classes: ClassList) -> None:
        self._video, self._file = video, (folder / "frames.csv").open("w", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        self._rows.writerow([*COLUMNS, *classes.names])

    def add(self, frame: FrameFigures) -> None:
        """Adds a row."""
        values: dict[str, Any] = vars(frame) | {"video": self._video, "frame": frame.index}
        self._rows.writerow([*map(values.get, COLUMNS), *frame.class_shares.tolist()])

    def __exit__(self, *_: object) -> None:
        self._file.close()


def make_results(clip: Clip, task: BatchTask, segmenter: Segmenter, progress: Callable[[], object]) -> dict[str, Any]:
    """Segments the video; its results appear under their name all at once. Returns the report.

    `progress` is called for every frame. If another process was faster, its results stay. Raises InputError for faults
    of the video itself.
    """
    asked = describe(clip, task)
    with whole_folder(task.folder / clip.name, replace=False) as folder:
        output, masks = str(folder / VIDEO), folder / MASKS
        job = VideoJob(clip.source, output if task.videos else None, task.options, masks if task.masks else None)
        with FrameTable(folder, clip.name, segmenter.classes) as table:
            with open_recording(job, segmenter) as recording:
                for _, _, figures in recording:
                    table.add(figures)
                    progress()
            if recording.broken_off:
                raise recording.broken_off
        record = job_record(job, recording)
        write_json(folder / REPORT, {**record, "asked": asked})
    return record


def describe(clip: Clip, task: BatchTask) -> dict[str, Any]:
    """All that determines the results, as JSON values: settings, weights, and size and time of the source's files."""
    path = Path(clip.source)
    files = [file.stat() for file in (list_images(path) if path.is_dir() else [path] if path.exists() else [])]
    options = json.loads(json.dumps(asdict(task.options)))
    return {
        "source": clip.source,
        "bytes": sum(file.st_size for file in files),
        "modified_ns": [file.st_mtime_ns for file in files],
        "weights": digest(task.options.model),
        "videos": task.videos,
        "masks": task.masks,
        "frames_version": VERSION,
        **options.pop("method"),
        **options,
    }


def read_results(clip: Clip, task: BatchTask) -> dict[str, Any] | None:
    """The report of existing results, or None. Raises InputError for results of other settings or sources."""
    folder = task.folder / clip.name
    if not folder.exists():
        return None
    try:
        report = dict(parse_json(read_small(folder / REPORT)))
        before = dict(report["asked"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{folder}: holds no results of a batch; choose another folder with -o") from error
    for name, now in describe(clip, task).items():
        if before.get(name) != now:
            was = f"{name} {before.get(name)}, not {now}"
            if name in ("bytes", "modified_ns"):
                was = f"other content of {clip.source}"
            raise InputError(f"{folder}: was made with {was}; choose another folder with -o")
    return report


@cache
def digest(model: str) -> str:
    """First 12 digits of the SHA-256 of the model's file. Raises InputError if there is no such file."""
    path = Path(model) if is_graph(model) else find_model(model)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise InputError(f"{model}: cannot be read ({error.strerror})") from error


def remove_leftovers(root: Path, clips: Iterable[Clip]) -> None:
    """Removes the partial results of these videos that killed workers left behind. Only the batch that locked `root`
    calls it."""
    names = {clip.name for clip in clips}
    for leftover in root.glob(".*.partial"):
        if leftover.name[1:].rsplit(".", 2)[0] in names:
            shutil.rmtree(leftover, ignore_errors=True)
    for name in names:
        (root / f".{name}.begun").unlink(missing_ok=True)
