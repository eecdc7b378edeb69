"""The results of one video, and the segmenters that make them. The folder is complete or absent, even if the process is
killed, and has a record of the files that were read."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from steadyseg.app.report_file import write_json
from steadyseg.app.scale.batch.clips import Clip
from steadyseg.app.scale.batch.frame_table import VERSION, FrameTable
from steadyseg.app.scale.batch.task import BatchTask
from steadyseg.app.sources.image_folder import list_images
from steadyseg.app.video.caches import Recent
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import job_record, needs_probs, open_for, open_recording
from steadyseg.core.errors import InputError
from steadyseg.core.method import draws_dropout
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.files import whole_folder
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.open_model import find_model, is_graph

REPORT, VIDEO, MASKS = "report.json", "video.mp4", "masks"
CHUNK = 2**22
"""Bytes of a file for one read."""


class Segmenters:
    """A cache of segmenters for one thread; each segmenter serves one video at a time. Opening a segmenter takes
    seconds, longer than a short video."""

    def __init__(self) -> None:
        self._open, self._compiled = Recent[Segmenter](), Recent[FrameNetwork]()

    def take(self, job: VideoJob) -> Segmenter:
        """A segmenter in its initial state, for a new stream. InputError for options that the model cannot fulfil."""
        key = replace(job.options, view="overlay", max_frames=None, legend=True, palette="distinct", settings=())
        segmenter = self._open.take(key, lambda: open_for(job, take=self._compiled.take))
        if draws_dropout(segmenter.method.mode):  # not kept: only a new segmenter draws the seed's first masks
            del self._open[key]
            self._compiled.clear()
            segmenter = open_for(job, take=self._compiled.take)
        segmenter.reset()
        segmenter.resets.clear()
        segmenter.clock.samples.clear()
        segmenter.keep_probs = needs_probs(job)
        return segmenter


def make_results(clip: Clip, wanted: BatchTask, segmenter: Segmenter, progress: Callable[[], object]) -> dict[str, Any]:
    """Segments the video; its results appear under their name all at once. Returns the report.

    `progress` is called for every frame, and before the first frame for every part of the file that is read. If another
    process was faster, its results stay. Raises InputError for faults of the video itself.
    """
    asked = describe(clip, wanted)
    read = {name: fingerprint(source, progress) for name, source in sources_of(clip).items()}
    with whole_folder(wanted.folder / clip.name, replace=False) as folder:
        output, masks = str(folder / VIDEO), folder / MASKS
        job = replace(clip.job, output=output if wanted.videos else None, masks=masks if wanted.masks else None)
        with FrameTable(folder, clip.name, segmenter.classes) as table:
            with open_recording(job, segmenter) as recording:
                for _, _, figures in recording:
                    table.add(figures)
                    progress()
            if recording.broken_off:
                raise recording.broken_off
        record = job_record(job, recording)
        write_json(folder / REPORT, {**record, "asked": asked, "read": read})
    return record


def describe(clip: Clip, wanted: BatchTask) -> dict[str, Any]:
    """All settings that determine the results, as JSON values; `sources_of` gives the files."""
    return {
        "options": json.loads(json.dumps(asdict(clip.job.options))),
        "labels": clip.job.labels and str(clip.job.labels),
        "weights": digest(clip.job.options.model),
        "videos": wanted.videos,
        "masks": wanted.masks,
        "frames_version": VERSION,
    }


def sources_of(clip: Clip) -> dict[str, str]:
    """Paths of a video's inputs: `source`, and `labels` if it has labels."""
    labels = clip.job.labels
    return {"source": clip.job.source} | ({"labels": str(labels)} if labels else {})


def fingerprint(source: str, each_chunk: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """{path, bytes, modified_ns, sha256} of a file or a folder of images; {path} of anything else (the street).

    The digest covers a file's content; for a folder it covers the names, sizes and times of its images. `each_chunk` is
    called after every 4 MB. Raises InputError for unreadable files.
    """
    path, content = Path(source), hashlib.sha256()
    if not path.exists():
        return {"path": source}
    try:
        state = path.stat()
        if path.is_dir():
            states = [(image.name, image.stat().st_size, image.stat().st_mtime_ns) for image in list_images(path)]
            content.update(json.dumps(states).encode())
        else:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK):
                    content.update(chunk)
                    each_chunk()
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from error
    return {"path": source, "bytes": state.st_size, "modified_ns": state.st_mtime_ns, "sha256": content.hexdigest()}


def is_same(before: dict[str, Any], source: str) -> bool:
    """True if the source equals the recorded source. A file whose size and time are unchanged is not read again."""
    path = Path(source)
    if path.is_file():
        state = path.stat()
        if (source, state.st_size, state.st_mtime_ns) == tuple(map(before.get, ("path", "bytes", "modified_ns"))):
            return True
    now = fingerprint(source)
    return bool(before == now or before.get("sha256", "none") == now.get("sha256"))


def read_results(clip: Clip, wanted: BatchTask) -> dict[str, Any] | None:
    """The report of existing results, or None. Raises InputError for results of other settings or sources."""
    folder = wanted.folder / clip.name
    if not folder.exists():
        return None
    try:
        report = dict(json.loads((folder / REPORT).read_text()))
        before, read = dict(report["asked"]), dict(report["read"])
        dict(before["options"]["method"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{folder}: holds no results of a batch; choose another folder with -o") from error
    before, now = (
        {**one, **one["options"], **one["options"]["method"], "options": None, "method": None}
        for one in (before, describe(clip, wanted))
    )
    for name in now:
        if before.get(name) != now[name]:
            raise InputError(
                f"{folder}: was made with {name} {before.get(name)}, not {now[name]}; choose another folder with -o"
            )
    for name, source in sources_of(clip).items():
        earlier = read[name]["path"]
        if not is_same(read[name], source):
            was = f"other content of {source}" if earlier == source else f"{earlier}, not from {source}"
            raise InputError(
                f"{folder}: was made from {was}; choose another folder with -o, or name each video in a table (.csv)"
            )
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
