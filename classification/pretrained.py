"""The classifiers that come with the package, and the functions that read one and build the members of an ensemble."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.model.model import Builder, Model, find_in, list_checkpoints, read_model

if TYPE_CHECKING:
    from torch import nn

FOLDER = Path(__file__).parent / "checkpoints"
ARCHITECTURE = "classifier"
"""Architecture in the record of every classifier."""


def build_trained(options: dict[str, Any], classes: int) -> "nn.Module":
    """Builds a classifier of a record."""
    from steadyseg.classification.networks.build import build_classifier  # torch

    return build_classifier(options, classes)


BUILDERS: dict[str, Builder] = {ARCHITECTURE: build_trained}


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


def build_members(models: Sequence[Model]) -> "list[nn.Module]":
    """Returns the networks of a deep ensemble: a classifier and further classifiers of the same classes and pictures.

    Each network maps (B, 3, s, s) normalised pictures to (B, K) logits, where s is `meta.height`. Raises InputError for
    a model that is no classifier, or has another preprocessing.
    """
    first = models[0]
    for model in models:
        require_classifier(model)
        require_classes(model.meta.classes, first.meta.classes, model.name, first.name)
        for name in ("height", "mean", "std"):
            own, expected = getattr(model.meta, name), getattr(first.meta, name)
            if own != expected:
                raise InputError(
                    f"{model.name}: its {name} is {own}, but {first.name} has {expected}; the members of an "
                    "ensemble see the same pictures"
                )
    return [model.network() for model in models]


def require_classes(classes: ClassList, expected: ClassList, what: str, where: str) -> None:
    """Raises InputError where `what` and `where` have other classes or another order: ids would differ in meaning."""
    ours, theirs = classes.names, expected.names
    if ours == theirs:
        return
    if len(ours) != len(theirs):
        raise InputError(
            f"{what}: {len(ours)} classes ({_in_short(ours)}), but {where} has {len(theirs)} "
            f"({_in_short(theirs)}); they must be the same"
        )
    place = next(i for i, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other)
    raise InputError(
        f"{what}: class {place} is {ours[place]!r}, but {theirs[place]!r} in {where}; they must be the same"
    )


def _in_short(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
