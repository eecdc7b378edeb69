"""Finished parts of a job, in an ignored folder: an interrupted `make results` loses minutes of an hour."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadyseg.core.system.files import write_atomic

FOLDER = Path(__file__).resolve().parent.parent.parent / "runs" / "results"


class Parts:
    """The parts of one job, by name; `digest` is that of its networks and data."""

    def __init__(self, job: str, digest: str, folder: Path = FOLDER) -> None:
        self.folder = folder / f"{job}-{digest}"

    def get(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns a part, made by `make` the first time and read from the file afterwards."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, json.dumps(make()).encode())
        return dict(json.loads(path.read_text()))

    def has(self, name: str) -> bool:
        return (self.folder / f"{name}.json").exists()

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
