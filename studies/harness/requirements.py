"""Checks of `steadyseg analyze` before any work is done: the installed packages, and the folder of the report."""

import os
from importlib.util import find_spec
from pathlib import Path

from steadyseg.core.errors import InputError, refuse_existing

CORRUPTIONS, PLOTS = "imagecorruptions", "matplotlib"


def require_extra(package: str, use: str) -> None:
    """Raises InputError that names the extra where the package is not installed; `use` says what needs it."""
    if find_spec(package) is None:
        raise InputError(f"{use} needs the package {package}, which is not installed: pip install 'steadyseg[studies]'")


def check_folder(out: Path, *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, if no report can be written into `out` or one is there already."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--output {out}: {there} is a file; give the name of a folder")
    if not os.access(there, os.W_OK):
        raise InputError(f"--output {out}: {there} cannot be written to; choose another folder")
    refuse_existing(out / "report.json", overwrite)
