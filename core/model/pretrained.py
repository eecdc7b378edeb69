"""Checkpoints by name: pretrained ones in the package's folders, and files."""

import difflib
import os
from pathlib import Path

from core.errors import InputError

SUFFIX = ".safetensors"


def list_checkpoints(*folders: Path) -> dict[str, Path]:
    """The files of the pretrained checkpoints by name, folder by folder and sorted in each."""
    return {path.stem: path for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}"))}


def find_in(model: str | Path, *folders: Path) -> Path:
    """The file of a pretrained name, or the path itself; InputError lists the known names."""
    text, known = str(model), list_checkpoints(*folders)
    if text in known:
        return known[text]
    path, names = Path(text), ", ".join(known)
    if path.suffix in (".pt", ".pth", ".ckpt", ".pkl"):
        raise InputError(f"{text}: pickled checkpoints are refused because loading one can run code; use {SUFFIX}")
    if path.suffix != SUFFIX and not os.path.exists(path):
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"choose from {names}" if known else "there is none"
        if near:
            hint = f"did you mean {near[0]}? Pretrained are {names}"
        raise InputError(f"unknown model {text!r}; {hint}; or give a {SUFFIX} file")
    if not os.path.isfile(path):  # not pathlib's: it raises where a name is too long
        raise InputError(f"{text}: no such checkpoint file; pretrained ones are {names or 'none'}")
    return path
