"""The videos of a batch, from files, folders, patterns and tables, with options and names of their results."""

import csv
import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from steadyseg.app.scale.flags import flag_reader
from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from steadyseg.app.sources.open_source import is_street
from steadyseg.app.video.flags import VideoJob, VideoOptions, check_options
from steadyseg.core.errors import InputError
from steadyseg.core.system.pictures import has_suffix, natural_order

OWN_COLUMNS = ("source", "name")
OF_THE_BATCH = ("output", "overwrite", "masks", "report")
"""Flags of `steadyseg video` that a batch decides or lacks, so no line of a table may have them."""
LONGEST_NAME = 100
"""Longest name in characters: file systems end at 255 bytes, and results are first made under a longer name."""


@dataclass(frozen=True)
class Clip:
    """One video of a batch."""

    name: str
    """Name of the folder of results."""
    job: VideoJob
    """Source and options; the paths of results are empty."""


def find_clips(sources: tuple[str, ...], options: VideoOptions) -> tuple[Clip, ...]:
    """All videos, in the order of the names. Raises InputError for missing files and for two videos of one name."""
    if not sources:
        raise InputError("no videos were named; give files, folders, patterns, a list (.txt) or a table (.csv)")
    clips = tuple(_from_anywhere(clip) for spec in sources for clip in _expand(spec, options))
    seen: dict[str, str] = {}
    for clip in clips:
        if clip.name in seen:
            raise InputError(
                f"{seen[clip.name]} and {clip.job.source} would both become {clip.name!r}; name each in a table (.csv) "
                "with the columns source and name"
            )
        seen[clip.name] = clip.job.source
    return clips


def _from_anywhere(clip: Clip) -> Clip:
    """A copy of the job with absolute paths, since a worker may run in another folder."""
    job, model = clip.job, clip.job.options.model
    source = job.source if is_street(job.source) else os.path.abspath(job.source)
    options = replace(job.options, model=os.path.abspath(model)) if os.path.isfile(model) else job.options
    return replace(clip, job=replace(job, source=source, labels=job.labels and job.labels.absolute(), options=options))


def _expand(spec: str, options: VideoOptions) -> Iterator[Clip]:
    path = Path(spec)
    if path.suffix.lower() == ".csv":
        yield from _read_table(path, options)
    elif path.suffix.lower() == ".txt":
        for number, line in _lines(path):
            for source in _sources(line, path.parent, f"{path}, line {number}"):
                yield Clip(name_of(source), VideoJob(source, options=options))
    else:
        for source in _sources(spec, Path(), spec):
            yield Clip(name_of(source), VideoJob(source, options=options))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and the lines that are neither empty nor a # comment."""
    lines = ((number, line.strip()) for number, line in enumerate(_text(path).splitlines(), start=1))
    found = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not found:
        raise InputError(f"{path}: names no video; expected a source a line")
    yield from found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InputError(f"{path}: cannot be read ({reason}); expected a list of videos") from error


def _sources(spec: str, base: Path, where: str) -> list[str]:
    """The sources that one argument or line names; paths are relative to `base`."""
    if is_street(spec):
        return [spec]
    if "://" in spec:
        raise InputError(f"{where}: a batch takes recordings; watch a stream with `steadyseg video`")
    path = base / spec
    if path.is_dir():
        return _of_folder(path)
    if path.is_file():  # a pipe or a device has no end
        return [str(path)]
    if glob.has_magic(spec):
        found = sorted(glob.glob(str(path), recursive=True), key=natural_order)
        if not found:
            raise InputError(f"{where}: nothing matches {str(path)!r}")
        return [source for one in found for source in (_of_folder(Path(one)) if os.path.isdir(one) else [one])]
    raise InputError(f"{where}: no such file or folder of recordings: {str(path)!r}")


def _of_folder(folder: Path) -> list[str]:
    """The videos of a folder, frame2 before frame10; a folder of images alone is one video."""
    try:
        names = sorted(os.listdir(folder), key=natural_order)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
    videos = [str(folder / name) for name in names if has_suffix(Path(name), VIDEO_SUFFIXES)]
    if videos:
        return videos
    if any(has_suffix(Path(name), IMAGE_SUFFIXES) for name in names):
        return [str(folder)]
    raise InputError(f"{folder}: holds neither videos ({', '.join(VIDEO_SUFFIXES[:4])}, ...) nor images")


def _read_table(path: Path, options: VideoOptions) -> Iterator[Clip]:
    """Reads a table with a source a line; other columns are flags of `steadyseg video`, omitted by an empty cell."""
    lines = csv.DictReader(_text(path).splitlines(), strict=True)
    columns = list(lines.fieldnames or ())
    if "source" not in columns:
        raise InputError(f"{path}: its first line has no column source (it has {', '.join(columns)[:80]!r})")
    read = flag_reader(options)
    for name in columns:
        if name.replace("-", "_") in OF_THE_BATCH:
            raise InputError(f"{path}: the column {name} is not for a line of a batch; omit it")
    count = 0
    for line in _rows(lines, path):
        where = f"{path}, line {lines.line_num}"
        if None in line or None in line.values():
            raise InputError(f"{where}: has not the {len(columns)} columns of the first line")
        flags = tuple((name, value) for name, value in line.items() if name not in OWN_COLUMNS and value)
        for source in _sources(line["source"].strip(), path.parent, where):
            try:
                job = read(flags)
                check_options(job.options)
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            labels = job.labels and path.parent / job.labels
            if labels and not labels.is_dir():
                raise InputError(f"{where}: no such folder of labels: {str(labels)!r}")
            name = _checked_name(line["name"].strip(), where) if line.get("name") else name_of(source)
            yield Clip(name, replace(job, source=source, labels=labels))
            count += 1
    if not count:
        raise InputError(f"{path}: names no video; expected a line for each under the first one")


def _rows(lines: "csv.DictReader[str]", path: Path) -> Iterator[dict[str, str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(f"{path}, line {lines.line_num}: no table with commas ({error})") from error


def name_of(source: str) -> str:
    """The name of a video's results: drives/a.mp4 -> a; street:7:50 -> street-7-50."""
    stem = source.replace(":", "-") if is_street(source) else Path(source).stem
    name = (stem or Path(source).resolve().name).encode(errors="replace").decode()  # tables of results are in UTF-8
    return _checked_name(name, source)


def _checked_name(name: str, where: str) -> str:
    if not name or name[0] in ".-" or len(name) > LONGEST_NAME or re.search(r"[/\\\x00-\x1f]", name):
        raise InputError(
            f"{where}: {name[:40]!r} cannot be the name of a folder of results; name it in a table (.csv) with the "
            "columns source and name"
        )
    return name
