"""The pictures that a classifier's training held out, to calibrate on where there is no val split."""

from pathlib import Path

import numpy as np

from classification.data.labelled import ClassificationSet
from classification.data.open import open_classification, training_indices
from core.errors import InputError
from core.model.checkpoint import CheckpointMeta

SPLIT = "held-out"


def open_split_of(data: Path, split: str, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """Opens a split of a data folder, or the part of `train` that the checkpoint's training held out."""
    return open_held_out(data, meta, model) if split == SPLIT else open_classification(data, split)


def open_trained(data: Path, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """Opens the pictures of `train` that the network was trained on; InputError where the folder has others."""
    source, trained, _ = divide_train(data, meta, model)
    return source.subset(trained)


def open_held_out(data: Path, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """Opens the held-out pictures; InputError where the training held out none, or where the folder has others."""
    if not read_division(meta)[0]:
        raise InputError(
            f"{model}: its training held out no pictures (train classification --hold-out 0.1); give another --split"
        )
    source, _, held = divide_train(data, meta, model)
    return source.subset(held)


def divide_train(data: Path, meta: CheckpointMeta, model: str) -> tuple[ClassificationSet, np.ndarray, np.ndarray]:
    """Returns `train` and the indices of trained and held-out pictures; InputError where their counts differ from the
    record."""
    share, fraction, seed, subset = read_division(meta)
    source = open_classification(data, "train")
    trained, held = training_indices(source.labels, fraction, share, seed, subset)
    counts = {"images": len(trained), "held_out": len(held)}
    recorded = {key: meta.training.get(key) for key in counts}
    if counts != recorded:
        raise InputError(
            f"{data}: {counts['images']} training pictures and {counts['held_out']} held out, but {model} was trained "
            f"on {recorded['images']} and held out {recorded['held_out']}; give the data it was trained on"
        )
    return source, trained, held


def read_division(meta: CheckpointMeta) -> tuple[float, float, int, int]:
    """Reads (held-out share, fraction of the rest, seed, subset) from the record; without these entries nothing was
    held out."""
    config = meta.training.get("config")
    try:
        assert isinstance(config, dict)
        numbers = int(config["loop"]["seed"]), int(config.get("subset", 0))
        return float(config["hold_out"]), float(config["fraction"]), *numbers
    except (AssertionError, KeyError, TypeError, ValueError):
        return 0.0, 1.0, 0, 0
