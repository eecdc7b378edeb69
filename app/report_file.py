"""Reports as JSON files, and their plots."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.core.errors import InputError
from steadyseg.core.system.files import DISK_ERRORS, require_place, write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_place(path: Path | None, *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if `path` cannot become a report; None passes."""
    if path is not None:
        require_place(path, "a report", (".json",), overwrite=overwrite)


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Writes a report whole or not at all; an absent or unwritable folder is bad input, a full disk an OSError."""
    _write(path, (json.dumps(record, indent=1) + "\n").encode())


def write_figure(path: Path, figure: "Figure", dpi: int) -> None:
    """Writes a plot whole or not at all, in the format of its name's suffix."""
    from matplotlib.text import Text

    picture = io.BytesIO()
    for text in figure.findobj(Text):
        text.set_parse_math("$" not in text.get_text())  # a class may be named $\\frac{$; matplotlib's own are parsed
    figure.savefig(picture, dpi=dpi, format=path.suffix.lstrip("."))
    _write(path, picture.getvalue())


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomic(path, data)
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
