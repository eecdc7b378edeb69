"""Opens a classification data set, and divides its training images class by class, as a training did or will do."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from steadyseg.classification.data.cifar import find_cifar, open_cifar
from steadyseg.classification.data.image_folder import SPLITS, open_image_folder, open_zip_folder
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta

HELD_OUT = "held-out"
"""Split: the part of `train` that a classifier's training held out, to calibrate on where there is no val."""
TRAINED = "trained"
"""Split: the part of `train` that a classifier's training saw."""


def open_classification(data: Path, split: str) -> ClassificationSet:
    """Opens a split (train or test, and for an image folder also val); InputError for anything else.

    `data` holds CIFAR's pickles, class folders (train/CLASS/*.jpg), or these in archives (train.zip, test.zip).
    """
    if not data.is_dir():
        raise InputError(f"{data}: no such folder; steadyseg data cifar10|cifar100 -o DIR fetches CIFAR")
    found = find_cifar(data)
    if found is not None:
        return open_cifar(*found, split)
    folders = [name for name in SPLITS if (data / name).is_dir()]
    archives = [f"{name}.zip" for name in SPLITS if (data / f"{name}.zip").is_file()]
    if folders and archives:
        raise InputError(f"{data}: holds {folders[0]}/ and {archives[0]}; expected one of the two, move the other away")
    if folders:
        return open_image_folder(data, split)
    if archives:
        return open_zip_folder(data, split)
    raise InputError(
        f"{data}: neither CIFAR (cifar-10-batches-py/ or cifar-100-python/) nor an ImageFolder (train/CLASS/*.jpg, or "
        "the class folders in train.zip); steadyseg data cifar10|cifar100 -o DIR fetches CIFAR"
    )


def balanced_fraction(labels: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Returns sorted indices of a random `fraction` of every class; with one seed, a larger fraction contains each
    smaller fraction.

    The published small-data studies train on 0.02 and 0.06 (arXiv 2202.06709). InputError where
    no image of a class would be left.
    """
    if not 0.0 < fraction <= 1.0:
        raise InputError(f"the fraction of the training images must lie in (0, 1], got {fraction}")
    return _first_of_every_class(labels, lambda count: round(fraction * count), f"a fraction of {fraction}", seed)


def split_held_out(labels: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns (trained, held-out) sorted indices; a random `share` of every class is held out, the same in every run.

    It takes no seed, so that the members of an ensemble, and runs that are compared, hold out the same images.
    """
    if not 0.0 <= share < 1.0:
        raise InputError(f"the held-out share must lie in [0, 1), got {share}")
    if not share:
        return np.arange(len(labels)), np.arange(0)
    held = _first_of_every_class(labels, lambda count: round(share * count), f"a held-out share of {share}", None)
    trained = np.setdiff1d(np.arange(len(labels)), held)
    lost = np.setdiff1d(labels[held], labels[trained])
    if len(lost):
        raise InputError(f"a held-out share of {share} leaves no image of class {lost[0]} to train on; hold out less")
    return trained, held


def balanced_subset(labels: np.ndarray, count: int) -> np.ndarray:
    """Returns sorted indices of `count` images, equally many of every class; a larger subset contains the smaller.

    It takes no seed: all trainings with the same `count` have the same images. InputError where the classes cannot
    share the images equally.
    """
    classes, sizes = np.unique(labels, return_counts=True)
    each, rest = divmod(count, len(classes))
    if rest or not 1 <= each <= sizes.min():
        raise InputError(
            f"a subset of {count} images cannot be shared equally by {len(classes)} classes of {sizes.min()} or more "
            f"images; expected a multiple of {len(classes)}, at most {len(classes) * sizes.min()}"
        )
    return _first_of_every_class(labels, lambda _: each, f"a subset of {count}", None)


def training_indices(
    labels: np.ndarray, fraction: float, hold_out: float, seed: int, subset: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (trained, held-out) indices; every fraction and subset has the same held-out images.

    `subset` images of the rest are the same for every seed (0: all); the `fraction` of these depends on the seed.
    """
    trained, held = split_held_out(labels, hold_out)
    if subset:
        trained = trained[balanced_subset(labels[trained], subset)]
    return trained[balanced_fraction(labels[trained], fraction, seed)], held


def _first_of_every_class(labels: np.ndarray, wanted: Callable[[int], int], what: str, seed: int | None) -> np.ndarray:
    """Returns the first images of every class, in a random order that depends on seed and class alone."""
    chosen = []
    for class_id in np.unique(labels):
        places = np.flatnonzero(labels == class_id)
        count = wanted(len(places))
        if count < 1:
            raise InputError(f"{what} leaves none of the {len(places)} images of class {class_id}; ask for more")
        entropy = [int(class_id)] if seed is None else [int(class_id), seed]
        chosen.append(np.random.default_rng(entropy).permutation(places)[:count])
    return np.sort(np.concatenate(chosen)) if chosen else np.arange(0)


def open_split_of(data: Path, split: str, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """Opens a split; `trained` and `held-out` are the parts of train that the training used and held out.

    InputError for `held-out` if the training held out none, and for both if the folder has other pictures than the
    training had.
    """
    if split not in (HELD_OUT, TRAINED):
        return open_classification(data, split)
    share, fraction, seed, subset = read_division(meta)
    if split == HELD_OUT and not share:
        raise InputError(
            f"{model}: its training held out no pictures (train classification --hold-out 0.1); give another --split"
        )
    source = open_classification(data, "train")
    trained, held = training_indices(source.labels, fraction, share, seed, subset)
    counts = {"images": len(trained), "held_out": len(held)}
    recorded = {key: meta.training.get(key) for key in counts}
    if counts != recorded:
        raise InputError(
            f"{data}: {counts['images']} training pictures and {counts['held_out']} held out, but {model} was trained "
            f"on {recorded['images']} and held out {recorded['held_out']}; give the data it was trained on"
        )
    return source.subset(held if split == HELD_OUT else trained)


def read_division(meta: CheckpointMeta) -> tuple[float, float, int, int]:
    """Reads (held-out share, fraction of the rest, seed, subset) from the record; without them nothing was held out."""
    config = meta.training.get("config")
    try:
        assert isinstance(config, dict)
        numbers = int(config["loop"]["seed"]), int(config.get("subset", 0))
        return float(config["hold_out"]), float(config["fraction"]), *numbers
    except (AssertionError, KeyError, TypeError, ValueError):
        return 0.0, 1.0, 0, 0
