"""The labelled pictures that every network of a study sees: chosen by a seed, read once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyseg.classification.data.open import open_split_of
from steadyseg.classification.pretrained import require_classes
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.street.drive import StreetSet
from steadyseg.studies.harness.target import TargetNetwork

DEFAULT_STILLS, DEFAULT_IMAGES = 30, 1000
STREET_PICTURES = 120
"""Pictures of the street to choose from: twelve of each of ten streets."""
BATCH_PIXELS = 2**17
"""Pixels of a batch for classifiers (128 pictures of 32x32, 2 of 224x224): an attack keeps the graphs of several
passes."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures with labels in an order that the seed has drawn, so that the first few of them are a random part."""

    root: Path
    split: str
    whole: int
    """Number of pictures in the split."""
    images: tuple[np.ndarray, ...]
    """(H, W, 3) uint8 RGB; for classifiers as the network sees them."""
    labels: tuple[np.ndarray, ...]
    """() class id, or (H, W) class ids and void."""
    places: tuple[int, ...]
    """Positions in the whole split: what is drawn for a picture does not depend on which others were chosen."""
    list_hash: str
    """12 digits that stand for which pictures these are."""
    data: str
    """cifar10, cifar100, or the folder's name."""
    batch: int
    """Number of pictures in a batch."""
    view: Callable[[np.ndarray], np.ndarray]
    """(H, W, 3) uint8 picture -> the part of it that the networks see."""

    def __len__(self) -> int:
        return len(self.images)

    def first(self, count: int) -> "Pictures":
        """The first `count` pictures, with the hash of all pictures."""
        return replace(self, images=self.images[:count], labels=self.labels[:count], places=self.places[:count])

    def batches(self) -> list[range]:
        """Numbers of the pictures of each batch."""
        return batches_of(len(self), self.batch)

    def about(self, seed: int) -> dict[str, Any]:
        """Describes the pictures in a report, so that they can be chosen again."""
        return {
            "data": self.data,
            "split": self.split,
            "pictures": len(self),
            "split_pictures": self.whole,
            "list_hash": self.list_hash,
            "seed": seed,
        }

    def notes(self, asked: int | None, seed: int) -> list[str]:
        """A note where these are not all pictures of the split, or fewer than were asked for."""
        if asked and asked > len(self):
            return [f"{asked} pictures were asked for; {self.split} has {self.whole}"]
        return [f"{len(self)} of {self.whole} pictures, drawn with seed {seed}"] if len(self) < self.whole else []

    def truth(self, numbers: range) -> Tensor:
        """Labels (B,) or (B, H, W) int64 of these pictures."""
        return torch.from_numpy(np.stack([self.labels[i] for i in numbers])).long()


def batches_of(count: int, size: int) -> list[range]:
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def batch_size(height: int, width: int) -> int:
    return max(1, min(128, BATCH_PIXELS // (height * width)))


def chosen_places(whole: int, wanted: int, seed: int) -> list[int]:
    """`wanted` of the numbers 0..whole-1, or all, in random order; a longer list begins with the shorter one."""
    return [int(place) for place in np.random.default_rng([seed % 2**64, whole]).permutation(whole)[:wanted]]


def open_pictures(data: Path, split: str, subjects: Sequence[TargetNetwork], images: int | None, seed: int) -> Pictures:
    """Reads the labelled pictures that the networks need. Raises InputError for what is missing or does not fit."""
    first = subjects[0]
    if first.is_segmentation and str(data) == "street":
        return street_pictures(first, images or DEFAULT_STILLS, seed)
    if first.is_segmentation:
        return stills(open_split(data, split, first.meta.classes), images or DEFAULT_STILLS, seed)
    return views(data, split, subjects, images or DEFAULT_IMAGES, seed)


def street_pictures(subject: TargetNetwork, wanted: int, seed: int) -> Pictures:
    """Labelled pictures of the synthetic street at the network's size, one a batch, of streets that no training
    draws."""
    if subject.meta.classes != CAMVID:
        raise InputError(f"{subject.name} has other classes than CamVid's 11, with which the street is labelled")
    street = StreetSet(STREET_PICTURES, subject.meta.height, subject.meta.width, first_seed=0)
    places = chosen_places(len(street), wanted, seed)
    images, labels = zip(*(street[place] for place in places), strict=True)
    name = f"street_0_{street.width}x{street.height}_{len(street)}"
    return Pictures(
        Path("street"), "test", len(street), images, labels, tuple(places), name, "street", 1, lambda image: image
    )


def stills(split: ImageFolderSplit, wanted: int, seed: int) -> Pictures:
    """Labelled pictures of a segmentation set, one a batch."""
    places = chosen_places(len(split), wanted, seed)
    read = [split[place] for place in places]
    chosen = replace(split, examples=tuple(split.examples[place] for place in places))
    return Pictures(
        split.root,
        split.split,
        len(split),
        tuple(image for image, _ in read),
        tuple(label for _, label in read),
        tuple(places),
        chosen.frame_hash,
        split.root.absolute().name,
        batch=1,
        view=lambda image: image,
    )


def views(data: Path, split: str, subjects: Sequence[TargetNetwork], wanted: int, seed: int) -> Pictures:
    """Pictures of a set, cut to the classifiers' view; ImageNet-C, too, is made of pictures cut in this way."""
    first = subjects[0]
    for other in subjects[1:]:
        if other.meta.height != first.meta.height:
            raise InputError(
                f"{first.name} sees pictures of {first.meta.height} pixels and {other.name} of {other.meta.height}: "
                "they cannot share corrupted ones; study them one by one"
            )
    whole = open_split_of(data, split, first.meta, first.name)
    require_classes(whole.classes, first.meta.classes, str(data), first.name)
    places = chosen_places(len(whole), wanted, seed)
    chosen, side = whole.subset(places), first.meta.height
    read = [chosen[number] for number in range(len(places))]

    def view(image: np.ndarray) -> np.ndarray:
        return chosen.evaluation_view(image, side)

    return Pictures(
        data,
        split,
        len(whole),
        tuple(view(image) for image, _ in read),
        tuple(np.asarray(label) for _, label in read),
        tuple(places),
        chosen.list_hash,
        chosen.name,
        batch_size(side, side),
        view,
    )
