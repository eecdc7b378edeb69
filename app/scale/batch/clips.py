"""The videos of a batch, from files, folders, patterns and tables, with options and names of their results."""

import csv
import glob
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from steadyseg.app.scale.flags import Flags, flag_reader
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
    seen, read = dict[str, Clip](), flag_reader(options)
    for where, base, row in (one for spec in sources for one in _rows(spec)):
        for clip in _clips(where, base, row, read):
            if clip.name in seen:
                raise InputError(
                    f"{seen[clip.name].job.source} and {clip.job.source} would both become {clip.name!r}; name each in "
                    "a table (.csv) with the columns source and name"
                )
            seen[clip.name] = clip
    return tuple(seen.values())


def _rows(spec: str) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """What an argument names: where that stands, the folder that its paths begin at, and its columns."""
    path = Path(spec)
    kind = path.suffix.lower()
    if kind not in (".txt", ".csv"):
        yield spec, Path(), {"source": spec}
        return
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InputError(f"{path}: cannot be read ({reason}); expected a list of videos") from error
    listed = ((number, {"source": line.strip()}) for number, line in enumerate(lines, start=1))
    named = ((number, row) for number, row in listed if row["source"] and not row["source"].startswith("#"))
    found = list(named if kind == ".txt" else _table(lines, path))
    if not found:
        raise InputError(f"{path}: names no video; expected a source a line")
    yield from ((f"{path}, line {number}", path.parent, row) for number, row in found)


def _table(lines: list[str], path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a table: sources, and flags of `steadyseg video`, omitted by an empty cell."""
    table = csv.DictReader(lines, strict=True)
    columns = list(table.fieldnames or ())
    if "source" not in columns:
        raise InputError(f"{path}: its first line has no column source (it has {', '.join(columns)[:80]!r})")
    for name in columns:
        if name.replace("-", "_") in OF_THE_BATCH:
            raise InputError(f"{path}: the column {name} is not for a line of a batch; omit it")
    try:
        for row in table:
            if None in row or None in row.values():
                raise InputError(f"{path}, line {table.line_num}: has not the {len(columns)} columns of the first line")
            yield table.line_num, row
    except csv.Error as error:
        raise InputError(f"{path}, line {table.line_num}: no table with commas ({error})") from error


def _clips(where: str, base: Path, row: dict[str, str], read: Callable[[Flags], VideoJob]) -> Iterator[Clip]:
    """The videos of a row, with absolute paths, since a worker may run in another folder."""
    try:
        job = read(tuple((name, value) for name, value in row.items() if name not in OWN_COLUMNS and value))
        check_options(job.options)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    labels, model = job.labels and (base / job.labels).absolute(), job.options.model
    if labels and not labels.is_dir():
        raise InputError(f"{where}: no such folder of labels: {str(labels)!r}")
    if os.path.isfile(model):
        job = replace(job, options=replace(job.options, model=os.path.abspath(model)))
    for source in _sources(row["source"].strip(), base, where):
        name = _checked_name(row["name"].strip(), where) if row.get("name") else name_of(source)
        yield Clip(name, replace(job, source=source, labels=labels))


def _sources(spec: str, base: Path, where: str) -> list[str]:
    """The sources that one argument or line names; paths are relative to `base`."""
    if is_street(spec):
        return [spec]
    if "://" in spec:
        raise InputError(f"{where}: a batch takes recordings; watch a stream with `steadyseg video`")
    path = os.path.abspath(base / spec)
    if os.path.isdir(path):
        return _of_folder(Path(path))
    if os.path.isfile(path):  # a pipe or a device has no end
        return [path]
    if not glob.has_magic(spec):
        raise InputError(f"{where}: no such file or folder of recordings: {str(base / spec)!r}")
    if not (found := sorted(glob.glob(path, recursive=True), key=natural_order)):
        raise InputError(f"{where}: nothing matches {str(base / spec)!r}")
    return [source for one in found for source in (_of_folder(Path(one)) if os.path.isdir(one) else [one])]


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
