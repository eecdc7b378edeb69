"""Names in lists and label files, and the names that files have here: one spelling may stand for another."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PureWindowsPath
from unicodedata import normalize
from urllib.parse import unquote

from steadyseg.core.system.pictures import HEIC, has_suffix

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".jfif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".avif", *HEIC)
UNREAD_SUFFIXES = (".jxl", ".gif", ".jp2", ".mpo", ".tga", ".dng")
"""Endings of pictures that no reader here opens."""
FORMS: tuple[Callable[[str], str], ...] = (
    str,
    lambda name: normalize("NFC", name),
    lambda name: normalize("NFC", unquote(name)),
    lambda name: normalize("NFC", unquote(name)).casefold(),
)
"""Forms in which spellings of a name are equal, the strictest first: Macs decompose letters, label tools encode names
for addresses, Windows does not tell capital letters."""


class Names:
    """Known names, each of which is found by its other spellings too."""

    def __init__(self, known: Iterable[str]) -> None:
        self._tables: list[dict[str, list[str]]] = [{} for _ in FORMS]
        for name in dict.fromkeys(known):
            for form, table in zip(FORMS, self._tables, strict=True):
                table.setdefault(form(name), []).append(name)

    def find(self, name: str) -> list[str]:
        """Returns the known names that equal this one in the strictest form in which any does."""
        tried = zip(FORMS, self._tables, strict=True)
        return next((found for form, table in tried if (found := table.get(form(name)))), [])


def listed_names(path: Path) -> list[str]:
    """Returns the lines of a list, without empty lines. A list that does not exist has no lines."""
    lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if line.strip()]


def known_name(listed: str, known: Names) -> str:
    """Returns the known name in a line of a list. The line is a name or path, which may have spaces, or begins with it.

    For a line without a known name, it returns the line's end without folders and a picture's suffix."""
    paths = [kind(part) for kind in (Path, PureWindowsPath) for part in (listed, listed.split()[0])]
    names = [path.stem if has_suffix(path, PICTURE_SUFFIXES) else path.name for path in paths]
    return next((found[0] for name in (listed, *names) if len(found := known.find(name)) == 1), names[0])


def same_end(paths: Sequence[Path], end: tuple[str, ...]) -> list[Path]:
    """Returns the paths that share the folders of `end`, in the strictest form in which any path does."""
    for form in FORMS:
        wanted = [*map(form, end[:-1])]
        if found := [path for path in paths if [*map(form, path.parts[-len(end) : -1])] == wanted]:
            return found
    return []


def spelled(path: Path, listings: dict[Path, Names]) -> Path:
    """Returns the path as it is spelled here, unchanged where none or several fit; `listings`: names by folder."""
    if path.exists() or path.parent == path:
        return path
    folder = spelled(path.parent, listings)
    if folder not in listings:
        listings[folder] = Names(os.listdir(folder) if folder.is_dir() else ())
    found = listings[folder].find(path.name)
    return folder / (found[0] if len(found) == 1 else path.name)
