"""The checkpoints that come with the package, by name."""

import os
from pathlib import Path

from core.errors import InputError

FOLDER = Path(__file__).parent / "checkpoints"


def bundled_names() -> list[str]:
    """Names of the bundled checkpoints, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def find_checkpoint(model: str | Path) -> Path:
    """The file of a bundled name, or the path itself; InputError lists the known names."""
    text = str(model)
    if text in bundled_names():
        return FOLDER / f"{text}.safetensors"
    path = Path(text)
    if path.suffix in (".pt", ".pth", ".ckpt", ".pkl"):
        raise InputError(f"{text}: pickled checkpoints are refused because loading one can run code; use .safetensors")
    if path.suffix != ".safetensors" and not os.path.exists(path):
        raise InputError(
            f"unknown model {text!r}; choose from {', '.join(bundled_names())} or give a .safetensors file"
        )
    if not os.path.isfile(path):  # not pathlib's: it raises where a name is too long
        raise InputError(f"{text}: no such checkpoint file; bundled ones are {', '.join(bundled_names())}")
    return path
