"""Reports as JSON files."""

import json
import os
from pathlib import Path
from typing import Any

from core.errors import InputError, refuse_existing


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
    """Writes a report; a folder that is not there or not writable is bad input."""
    try:
        path.write_text(json.dumps(record, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{path}: the report cannot be written ({error.strerror})") from error
