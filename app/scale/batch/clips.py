"""The videos of a batch, from files, folders, patterns and lists, with the names of their results."""

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steadyseg.app.sources.image_folder import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from steadyseg.app.sources.open_source import is_street
from steadyseg.app.sources.url import require_separator
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import read_small
from steadyseg.core.system.pictures import has_suffix, natural_order

LONGEST_NAME = 100
"""Longest name in characters: file systems end at 255 bytes, and results are first made under a longer name."""


@dataclass(frozen=True)
class Clip:
    """One video of a batch."""

    name: str
    """Name of the folder of results."""
    source: str
    """Absolute path, since a worker may run in another folder, or `street[:SEED[:FRAMES]]`."""


def find_clips(sources: tuple[str, ...]) -> tuple[Clip, ...]:
    """All videos, in the order of the names. Raises InputError for missing files and for two videos of one name."""
    if not sources:
        raise InputError("no videos were named; give files, folders, patterns or a list (.txt)")
    seen = dict[str, Clip]()
    for where, base, spec in (line for source in sources for line in _lines(source)):
        for source in _sources(spec, base, where):
            name = name_of(source)
            if name in seen:
                raise InputError(
                    f"{seen[name].source} and {source} would both become {name!r}; rename one, or take two batches"
                )
            seen[name] = Clip(name, source)
    return tuple(seen.values())


def _lines(spec: str) -> Iterator[tuple[str, Path, str]]:
    """What an argument names, by lines of a list: where the line stands, the folder that it begins at, a source."""
    path = Path(spec)
    if path.suffix.lower() != ".txt":
        yield spec, Path(), spec
        return
    try:
        lines = read_small(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InputError(f"{path}: cannot be read ({reason}); expected a list of videos") from error
    named = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    found = [(f"{path}, line {number}", path.parent, line) for number, line in named if line and line[0] != "#"]
    if not found:
        raise InputError(f"{path}: names no video; expected a source a line")
    yield from found


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
    require_separator(spec)
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
    if not name or name[0] in ".-" or len(name) > LONGEST_NAME or re.search(r"[\\\x00-\x1f]", name):
        raise InputError(f"{source}: {name[:40]!r} cannot be the name of a folder of results; rename it")
    return name
