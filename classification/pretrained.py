"""The classifiers that come with the package, by name."""

from pathlib import Path

from core.model.pretrained import find_in, list_checkpoints

FOLDER = Path(__file__).parent / "checkpoints"


def list_classifiers() -> list[str]:
    """Names of the pretrained classifiers, sorted."""
    return list(list_checkpoints(FOLDER))


def find_classifier(model: str | Path) -> Path:
    """The file of a pretrained name, or the path itself; InputError lists the known names."""
    return find_in(model, FOLDER)
