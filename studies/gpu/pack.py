"""Code, data and wheels as parts of a size that can be carried to a machine that reaches nothing."""

import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from core.errors import InputError
from studies.gpu.unpack import LIST_NAME

REPOSITORY = Path(__file__).parent.parent.parent
CODE = ("app", "core", "seg", "classification", "export", "steadyseg", "studies", "pyproject.toml")
LEFT_OUT = "studies/results/checkpoints/"
"""65 MB that nothing here reads."""
UNPACK = Path(__file__).parent / "unpack.py"


def pack(camvid: Path, wheels: Path | None, to: Path, part_mib: int) -> list[Path]:
    """Writes part-00, part-01, ..., parts.json and unpack.py; below WORK they become code/, camvid/ and wheels/."""
    if part_mib < 1:
        raise InputError(f"--part-mib must be 1 or more, got {part_mib}")
    if to.exists() and any(to.iterdir()):
        raise InputError(f"{to}: not empty; choose another folder")
    to.mkdir(parents=True, exist_ok=True)
    whole = to / "whole.tar"
    with tarfile.open(whole, "w") as archive:  # PNGs and wheels do not compress
        for name in code_files():
            archive.add(REPOSITORY / name, f"code/{name}")
        add_folder(archive, camvid, "camvid")
        if wheels:
            add_folder(archive, wheels, "wheels")
    parts = split(whole, part_mib * 2**20)
    whole.unlink()
    digests = {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts}
    (to / LIST_NAME).write_text(json.dumps(digests, indent=1) + "\n")
    shutil.copy(UNPACK, to / UNPACK.name)
    return parts


def code_files() -> list[str]:
    """What git tracks of the code; the checkpoints that ship are among it."""
    listed = subprocess.run(["git", "ls-files", *CODE], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if not name.startswith(LEFT_OUT)]


def add_folder(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """Its files in sorted order."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        archive.add(file, f"{name}/{file.relative_to(folder).as_posix()}")


def split(whole: Path, size: int) -> list[Path]:
    """The file cut into pieces of at most so many bytes, beside it."""
    parts: list[Path] = []
    for number, piece in enumerate(pieces(whole, size)):
        parts.append(whole.with_name(f"part-{number:02}"))
        parts[-1].write_bytes(piece)
    return parts


def pieces(whole: Path, size: int) -> Iterable[bytes]:
    with whole.open("rb") as file:
        while piece := file.read(size):
            yield piece
