"""Reports as JSON files, and their plots."""

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError, refuse_existing
from core.system.files import DISK_ERRORS, write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_place(path: Path | None, *, overwrite: bool = True) -> None:
    """Raises InputError before any work is done where `path` cannot become a report."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a .json file in it")
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: a report is a .json file; give it that ending")
    refuse_existing(path, overwrite)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: there is no folder {path.parent} that can be written to; make it first")


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Writes a report whole or not at all; a folder that is not there or not writable is bad input, a full disk an
    OSError."""
    _write(path, (json.dumps(record, indent=1) + "\n").encode())


def write_figure(path: Path, figure: "Figure", dpi: int) -> None:
    """A plot, in the format that its name's ending says; whole or not at all."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi, format=path.suffix.lstrip("."))
    _write(path, picture.getvalue())


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomic(path, data)
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
