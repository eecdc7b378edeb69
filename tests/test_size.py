"""Ceilings of the code: a feature that raises one says in the same commit what goes."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
CEILINGS = {
    "app": (12_345, 119),
    "core": (7_470, 72),
    "seg": (9_150, 80),
    "classification": (2_940, 23),
    "export": (4_275, 33),
    "studies": (10_430, 114),
    "tests": (31_715, 217),
}
"""Lines and files of Python by folder, little above what was reached; lines are as ruff formats them."""


@pytest.mark.parametrize("folder", CEILINGS)
def test_a_folder_stays_within_its_ceilings(folder: str) -> None:
    files = [path for path in (PROJECT / folder).rglob("*.py") if "__pycache__" not in path.parts]
    lines = sum(len(path.read_text().splitlines()) for path in files)
    max_lines, max_files = CEILINGS[folder]
    assert lines <= max_lines and len(files) <= max_files, (lines, len(files))
