"""Finds the training pictures that a classifier's training held back: what to calibrate on where there is no val
split."""

from pathlib import Path

import numpy as np

from classification.data.open import ClassificationSet, open_classification, training_indices
from core.errors import InputError
from core.model.checkpoint import CheckpointMeta

SPLIT = "held-back"


def open_split_of(data: Path, split: str, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """The split of a data folder, or the part of `train` that the checkpoint's record says was held back."""
    return open_held_back(data, meta, model) if split == SPLIT else open_classification(data, split)


def open_trained(data: Path, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """The pictures of `train` that the network was trained on; InputError where these are not they."""
    source, trained, _ = divide_train(data, meta, model)
    return source.subset(trained)


def open_held_back(data: Path, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """InputError where the training held nothing back, or where these are not the pictures that it had."""
    if not read_division(meta)[0]:
        raise InputError(
            f"{model}: its training held no pictures back (train classification --hold-back 0.1 does); give "
            f"another --split"
        )
    source, _, held = divide_train(data, meta, model)
    return source.subset(held)


def divide_train(data: Path, meta: CheckpointMeta, model: str) -> tuple[ClassificationSet, np.ndarray, np.ndarray]:
    """`train`, and the places of what the training used and held back; InputError where their numbers are not its."""
    share, fraction, seed = read_division(meta)
    source = open_classification(data, "train")
    trained, held = training_indices(source.labels, fraction, share, seed)
    found = {"images": len(trained), "held_back": len(held)}
    recorded = {key: meta.training.get(key) for key in found}
    if found != recorded:
        raise InputError(
            f"{data}: {found['images']} training pictures and {found['held_back']} held back, but {model} was "
            f"trained on "
            f"{recorded['images']} and held back {recorded['held_back']}; give the data it was trained on"
        )
    return source, trained, held


def read_division(meta: CheckpointMeta) -> tuple[float, float, int]:
    """(held-back share, fraction of the rest, seed) of the training; a record that does not say held nothing back."""
    config = meta.training.get("config")
    try:
        assert isinstance(config, dict)
        return float(config["hold_back"]), float(config["fraction"]), int(config["loop"]["seed"])
    except (AssertionError, KeyError, TypeError, ValueError):
        return 0.0, 1.0, 0
