"""The results of one video: a folder that is complete or absent, even if the process is killed."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from app.report_file import write_json
from app.scale.batch.clips import Clip
from app.scale.batch.fingerprint import fingerprint, is_same
from app.scale.batch.frame_table import VERSION, FrameTable
from app.scale.batch.task import BatchOutputs
from app.sources.source import Source
from app.video.flags import VideoJob
from app.video.job import segment_to_files
from core.errors import InputError
from core.frame import Frame
from core.segmenter import Segmenter
from core.system.files import whole_folder

REPORT, FRAMES, VIDEO, MASKS = "report.json", "frames.parquet", "video.mp4", "masks"


def make_results(
    clip: Clip, wanted: BatchOutputs, take: Callable[[VideoJob], Segmenter], progress: Callable[[], object]
) -> int:
    """Segments the video; its results appear under their name all at once. Returns the number of frames.

    `progress` is called for every frame, and for every part of the file that is read before the first one. If another
    process was faster, its results stay. Raises InputError for faults of the video itself.
    """
    asked = describe(clip, wanted)
    read = {name: fingerprint(source, progress) for name, source in sources_of(clip).items()}
    with whole_folder(wanted.folder / clip.name, replace=False) as folder:
        job = replace(
            clip.job, output=folder / VIDEO if wanted.videos else None, masks=folder / MASKS if wanted.masks else None
        )
        segmenter = take(job)

        def exhaust(frames: Iterator[Frame], _: Source) -> bool:
            for _frame in frames:
                progress()
            return False

        with FrameTable(folder / FRAMES, clip.name, segmenter.classes) as each:
            outcome = segment_to_files(job, segmenter, follow=exhaust, each=each)
            if outcome.broken_off:
                raise outcome.broken_off
        write_json(folder / REPORT, {**outcome.record, "asked": asked, "read": read})
    return int(outcome.record["frames"])


def describe(clip: Clip, wanted: BatchOutputs) -> dict[str, Any]:
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
    """The source and the labels of a video, by name."""
    labels = clip.job.labels
    return {"source": clip.job.source} | ({"labels": str(labels)} if labels else {})


def read_results(clip: Clip, wanted: BatchOutputs) -> dict[str, Any] | None:
    """The report of existing results, or None. Raises InputError for results of other settings or sources."""
    folder = wanted.folder / clip.name
    if not folder.exists():
        return None
    try:
        report = dict(json.loads((folder / REPORT).read_text()))
        before, read = dict(report["asked"]), dict(report["read"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{folder}: holds no results of a batch; choose another folder with -o") from error
    now = describe(clip, wanted)
    differing = next((name for name in now if before.get(name) != now[name]), None)
    if differing == "options":
        old, new = (_flat(one["options"]) for one in (before, now))
        differing = next(name for name in new if old.get(name) != new[name])
        before, now = old, new
    if differing:
        raise InputError(
            f"{folder}: was made with {differing} {before.get(differing)}, not {now[differing]}; choose another folder "
            "with -o"
        )
    for name, source in sources_of(clip).items():
        earlier = read[name]["path"]
        if not is_same(read[name], source):
            was = f"other content of {source}" if earlier == source else f"{earlier}, not from {source}"
            raise InputError(
                f"{folder}: was made from {was}; choose another folder with -o, or name each video in a table (.csv)"
            )
    return report


def _flat(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, **options["method"], "method": None}


@cache
def digest(model: str) -> str:
    """First 12 digits of the SHA-256 of the model's file. Raises InputError if there is no such file."""
    from app.open_model import find_model, is_graph

    path = Path(model) if is_graph(model) else find_model(model)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise InputError(f"{model}: cannot be read ({error.strerror})") from error


def remove_leftovers(root: Path, clips: Iterable[Clip]) -> None:
    """Removes partial results of these videos that killed workers left. Call it only from the batch that locked the
    folder."""
    names = {clip.name for clip in clips}
    for leftover in root.glob(".*.partial"):
        if leftover.name[1:].rsplit(".", 2)[0] in names:
            shutil.rmtree(leftover, ignore_errors=True)
