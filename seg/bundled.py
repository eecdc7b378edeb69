"""The segmentation checkpoints that come with the package, by name."""

from pathlib import Path

from core.bundled import bundled_in, find_in

FOLDER = Path(__file__).parent / "checkpoints"


def bundled_names() -> list[str]:
    """Names of the bundled checkpoints, sorted."""
    return list(bundled_in(FOLDER))


def find_checkpoint(model: str | Path) -> Path:
    """The file of a bundled name, or the path itself; InputError lists the known names."""
    return find_in(model, FOLDER)
