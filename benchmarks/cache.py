"""Measured rows in a JSON file under docs/, kept while checkpoint, data and protocol stay what they were."""

import json
from pathlib import Path
from typing import Any

from core.atomic_file import write_whole
from core.bundle import rounded
from core.errors import InputError


class Cache:
    """The file, written whole after every job, so that an interrupted run goes on where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        except ValueError as error:
            raise InputError(f"{path}: damaged ({error}); delete it or get it back from git") from error

    def get(self, name: str, digest: str) -> dict[str, Any] | None:
        """What was measured under this name, if it was measured on the same things."""
        found = self.record.get(name)
        return found["rows"] if found and found["digest"] == digest else None

    def put(self, name: str, digest: str, rows: dict[str, Any], about: dict[str, Any]) -> None:
        self.record[name] = {"digest": digest, **about, "rows": rounded(rows)}
        self.write()

    def write(self) -> None:
        """The record as it is now, in place of the file."""
        text = json.dumps(self.record, indent=1, sort_keys=True)
        write_whole(self.path, (text + "\n").encode())
