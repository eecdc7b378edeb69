"""Builds the networks of opened classifiers, and compares class lists."""

from collections.abc import Sequence

from torch import nn

from classification.pretrained import require_classifier
from core.classes import ClassList
from core.errors import InputError
from core.model.model import Model


def build_members(models: Sequence[Model]) -> list[nn.Module]:
    """Returns the networks of a classifier and of further ones of the same classes and pictures, a deep ensemble.

    Each maps (B, 3, s, s) normalised pictures to (B, K) logits, s is `meta.height`. Raises InputError for a model that
    is no classifier, or has another preprocessing.
    """
    first = models[0]
    for model in models:
        require_classifier(model)
        require_classes(model.meta.classes, first.meta.classes, model.name, first.name)
        for name in ("height", "mean", "std"):
            own, expected = getattr(model.meta, name), getattr(first.meta, name)
            if own != expected:
                raise InputError(
                    f"{model.name}: its {name} is {own}, that of {first.name} {expected}; the members of an ensemble "
                    "see the same pictures"
                )
    return [model.network() for model in models]


def require_classes(classes: ClassList, expected: ClassList, what: str, where: str) -> None:
    """Raises InputError where `what` and `where` have different classes or orders of classes: ids would differ in
    meaning."""
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
