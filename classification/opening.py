"""Opens a classifier's checkpoint: the network in evaluation mode, and its record."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from classification.networks.build import build_classifier
from classification.pretrained import find_classifier
from core.classes import ClassList
from core.errors import InputError
from core.model.checkpoint import CheckpointMeta, load_checkpoint, load_weights, read_meta
from core.model.weight_limit import limited_weights
from core.preprocess import MAX_HEIGHT

ARCHITECTURE = "classifier"
"""What the record of every classifier says."""


def open_classifier(model: str | Path) -> tuple[nn.Module, CheckpointMeta]:
    """(network (B, 3, s, s) normalised -> (B, K) logits, its record) of a pretrained name or a file; s is
    `meta.height`.

    The network is in evaluation mode; its dropout layers draw until `set_dropout_active(network, False)`. InputError
    for anything that is no classifier of ours.
    """
    path = find_classifier(model)
    check_record(read_meta(path), path)
    tensors, meta = load_checkpoint(path)
    with limited_weights(tensors, path):
        network = build_classifier(meta.options, len(meta.classes))
    load_weights(network, tensors, path)
    return network.eval(), meta


def open_classifiers(model: str | Path, members: Sequence[str | Path] = ()) -> tuple[list[nn.Module], CheckpointMeta]:
    """A classifier and further ones of the same classes and pictures, a deep ensemble; the record is the first
    one's."""
    first, meta = open_classifier(model)
    networks = [first]
    for name in members:
        network, other = open_classifier(name)
        require_classes(other.classes, meta.classes, str(name), str(model))
        for what in ("height", "mean", "std"):
            if getattr(other, what) != getattr(meta, what):
                raise InputError(
                    f"{name}: its {what} is {getattr(other, what)}, that of {model} {getattr(meta, what)}; the "
                    f"members of an "
                    "ensemble see the same pictures"
                )
        networks.append(network)
    return networks, meta


def check_record(meta: CheckpointMeta, path: Path) -> None:
    """InputError for a record that is no classifier's."""
    if meta.architecture != ARCHITECTURE:
        raise InputError(
            f"{path}: its architecture is {meta.architecture!r}, a segmentation network; expected a classifier"
        )
    if meta.height != meta.width or meta.height > MAX_HEIGHT:
        raise InputError(
            f"{path}: pictures of {meta.width}x{meta.height}; a classifier's are square, at most {MAX_HEIGHT} a side"
        )
    if meta.classes.void is not None:
        raise InputError(f"{path}: its class list has a void id, as a segmentation network's; a classifier has none")


def require_classes(classes: ClassList, expected: ClassList, what: str, where: str) -> None:
    """InputError where `what` has other classes than `where`, or the same in another order: ids would mean something
    else."""
    ours, theirs = classes.names, expected.names
    if ours == theirs:
        return
    if len(ours) != len(theirs):
        raise InputError(
            f"{what}: {len(ours)} classes ({_in_short(ours)}), but {where} has {len(theirs)} "
            f"({_in_short(theirs)}); they must "
            "be the same"
        )
    place = next(i for i, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other)
    raise InputError(
        f"{what}: class {place} is {ours[place]!r}, but {theirs[place]!r} in {where}; they must be the same"
    )


def _in_short(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
