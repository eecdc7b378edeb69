"""Puts what `python -m studies.gpu pack` made together again. Needs Python alone, so that it runs on a bare machine.

    python unpack.py PARTS_FOLDER [PARTS_FOLDER ...] --to WORK

May be called once a part, as they arrive: parts are kept in WORK/.parts until the last one is there, then code, data
and wheels are written below WORK, each part checked against its SHA-256.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LIST_NAME = "parts.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders with parts.json and some of the parts")
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    missing = unpack(given.folders, given.to)
    print(f"missing: {' '.join(missing)}" if missing else f"unpacked below {given.to}")
    return 0


def unpack(folders: list[Path], to: Path) -> list[str]:
    """The names of the parts that have not arrived yet; where there are none, everything lies below `to`."""
    kept = to / ".parts"
    kept.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for file in (folder / LIST_NAME, *folder.glob("part-*")):
            shutil.copy(file, kept / file.name)
    digests: dict[str, str] = json.loads((kept / LIST_NAME).read_text())
    missing = [name for name in digests if not (kept / name).exists()]
    if not missing:
        for name, digest in digests.items():
            if hashlib.sha256((kept / name).read_bytes()).hexdigest() != digest:
                raise SystemExit(f"{name}: not the part that was packed; bring it again")
        with tarfile.open(fileobj=Joined(kept / name for name in digests), mode="r|") as archive:  # type: ignore[arg-type]
            archive.extractall(to, filter="data")
        shutil.rmtree(kept)
    return missing


class Joined:
    """Several files read as one."""

    def __init__(self, files: Iterator[Path]) -> None:
        self._files, self._open = files, None  # type: ignore[var-annotated]

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if self._open is None:
                file = next(self._files, None)
                if file is None:
                    break
                self._open: BinaryIO | None = file.open("rb")
            found = self._open.read(size - len(data))
            if not found:
                self._open.close()
                self._open = None
            data += found
        return data


if __name__ == "__main__":
    sys.exit(main())
