"""The classifiers that come with the package, and the function that reads one."""

from pathlib import Path

from classification.networks.build import build_classifier
from core.errors import InputError
from core.model.model import Builder, Model, read_model
from core.model.pretrained import find_in, list_checkpoints

FOLDER = Path(__file__).parent / "checkpoints"
ARCHITECTURE = "classifier"
"""Architecture in the record of every classifier."""
BUILDERS: dict[str, Builder] = {ARCHITECTURE: build_classifier}


def list_classifiers() -> list[str]:
    """Names of the pretrained classifiers, sorted."""
    return list(list_checkpoints(FOLDER))


def find_classifier(model: str | Path) -> Path:
    """The file of a pretrained name, or the path itself; InputError lists the known names."""
    return find_in(model, FOLDER)


def read_classifier(name: str | Path) -> Model:
    """Reads a classifier by its pretrained name or its path; InputError for anything else."""
    model = read_model(name, (FOLDER,), BUILDERS)
    require_classifier(model)
    return model


def require_classifier(model: Model) -> None:
    """Raises InputError for a model that is not a classifier."""
    meta, path = model.meta, model.path
    if meta.architecture != ARCHITECTURE:
        raise InputError(
            f"{path}: its architecture is {meta.architecture!r}, a segmentation network; expected a classifier"
        )
    if meta.height != meta.width:
        raise InputError(f"{path}: pictures of {meta.width}x{meta.height}; a classifier's are square")
    if meta.classes.void is not None:
        raise InputError(f"{path}: its class list has a void id, as a segmentation network's; a classifier has none")
