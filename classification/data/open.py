"""Opens a classification data set, and divides its training images class by class, as a training did or will do."""

from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.classification.data.cifar import find_cifar, open_cifar
from steadyseg.classification.data.image_folder import SPLITS, open_image_folder, open_zip_folder
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.options import is_number

HELD_OUT = "held-out"
"""Split: the part of `train` that a classifier's training held out, to calibrate on where there is no val."""
TRAINED = "trained"
"""Split: the part of `train` that a classifier's training saw."""


def open_classification(data: str | Path, split: str) -> ClassificationSet:
    """Opens a split (train or test, and for an image folder also val); InputError for anything else.

    `data` holds CIFAR's pickles, class folders (train/CLASS/*.jpg), or these in archives (train.zip, test.zip).
    """
    data = Path(data)
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


def split_held_out(labels: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns (trained, held-out) sorted indices; a random `share` of every class is held out, the same in every run.

    It takes no seed, so that the members of an ensemble, and runs that are compared, hold out the same images.
    """
    if not 0.0 <= share < 1.0:
        raise InputError(f"the held-out share must lie in [0, 1), got {share}")
    if not share:
        return np.arange(len(labels)), np.arange(0)
    chosen = []
    for class_id in np.unique(labels):
        places = np.flatnonzero(labels == class_id)
        count = round(share * len(places))
        if not count:
            raise InputError(f"a held-out share of {share} holds out no image of class {class_id}; hold out more")
        if count == len(places):
            raise InputError(
                f"a held-out share of {share} leaves no image of class {class_id} to train on; hold out less"
            )
        chosen.append(np.random.default_rng([int(class_id)]).permutation(places)[:count])
    held = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(len(labels)), held), held


def open_split_of(data: Path, split: str, meta: CheckpointMeta, model: str) -> ClassificationSet:
    """Opens a split; `trained` and `held-out` are the parts of train that the training used and held out.

    InputError for `held-out` if the training held out none, and for both if the folder has other pictures than the
    training had.
    """
    if split not in (HELD_OUT, TRAINED):
        return open_classification(data, split)
    record = meta.training
    config: Any = record.get("config")
    share: Any = config.get("hold_out") if isinstance(config, dict) else None
    share = share if is_number(share, 0, 1) else 0.0
    if split == HELD_OUT and not share:
        raise InputError(
            f"{model}: its training held out no pictures (train classification --hold-out 0.1); give another split"
        )
    source = open_classification(data, "train")
    trained, held = split_held_out(source.labels, share)
    digest = record.get("list_hash", source.list_hash)  # records of earlier versions have none
    if (len(trained), len(held), source.list_hash) != (record.get("images"), record.get("held_out"), digest):
        raise InputError(
            f"{data}: {len(trained)} training pictures and {len(held)} held out, but {model} was trained on "
            f"{record.get('images')} and held out {record.get('held_out')}, or on other pictures; give its data"
        )
    return source.subset(held if split == HELD_OUT else trained)
