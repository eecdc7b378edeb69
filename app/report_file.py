"""Reports as JSON files."""

import json
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import DISK_ERRORS, require_place, write_atomic


def check_place(path: Path, *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if `path` cannot become a report."""
    require_place(path, "a report", (".json",), overwrite=overwrite)


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Writes a report whole or not at all; an absent or unwritable folder is bad input, a full disk an OSError."""
    try:
        write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
