"""Statistics of a training set: colours, class frequencies and weights, and the class shares in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.classes import CLASS_LISTS, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.preprocess import mean_and_std
from steadyseg.seg.data.coarse import is_coarse
from steadyseg.seg.options import SegTrainConfig

RARE_SHARE, RARE_IMAGES = 0.001, 5
"""A class below this share of the pixels, or number of images, is rare."""


@dataclass(frozen=True)
class DataStatistics:
    """Statistics over the training images; void pixels count for the colours, not for the classes."""

    mean: tuple[float, float, float]
    """RGB, 0..1."""
    std: tuple[float, float, float]
    """RGB, 0..1."""
    median_frequency: tuple[float, ...]
    """median(freq) / freq_c, freq_c = pixels of c / pixels of the images that contain c (SegNet); 0 for absent
    classes."""
    pixels: np.ndarray
    """(images, K + 1): pixels of each class, then of void, in each image."""


def measure(pairs: Iterable[tuple[np.ndarray, np.ndarray]], classes: ClassList) -> DataStatistics:
    """Computes the statistics in one pass over (image, label) pairs."""
    colours, counts = np.zeros((3, 256)), []
    for image, label in pairs:
        for channel in range(3):  # a histogram is exact and 8 times faster than a float copy of the image
            colours[channel] += np.bincount(image[..., channel].ravel(), minlength=256)
        counts.append(count_pixels([label], classes))
    pixels = np.concatenate(counts)
    sizes, of_class = pixels.sum(1), pixels[:, :-1]
    if not of_class.any():
        raise InputError("the training labels hold no pixel of any class; is this the right class list?")
    mean, std = mean_and_std(colours)
    frequency = of_class.sum(0) / np.maximum(sizes @ (of_class > 0), 1)
    return DataStatistics(_rgb(mean), _rgb(std), _median_over(frequency), pixels)


def class_weights(statistics: DataStatistics, config: SegTrainConfig) -> Tensor:
    """Returns the loss weights (K,): ones, median-frequency weights, their power `soften`, or median-frequency over all
    pixels."""
    if config.class_weights == "median-frequency-all":
        pixels = statistics.pixels[:, :-1].sum(0)
        return torch.tensor(_median_over(pixels / pixels.sum()))
    exponent = {"none": 0.0, "softened": config.soften, "median-frequency": 1.0}[config.class_weights]
    return torch.tensor(statistics.median_frequency).pow(exponent)


def _median_over(frequency: np.ndarray) -> tuple[float, ...]:
    """Returns median(freq) / freq_c over the classes that occur; 0 for other classes."""
    present = frequency > 0
    weights = np.where(present, np.median(frequency[present]) / np.where(present, frequency, 1), 0.0)
    return tuple(float(weight) for weight in weights)


def _rgb(values: np.ndarray) -> tuple[float, float, float]:
    red, green, blue = (round(float(value), 6) for value in values)
    return red, green, blue


def count_pixels(labels: Iterable[np.ndarray], classes: ClassList) -> np.ndarray:
    """Counts the pixels of each class and of void in each label; returns (images, K + 1) int64.

    A pixel of a coarse label counts for every class that it allows.
    """
    ids = [*range(len(classes)), classes.void_id]
    counts = list[Any]()
    for label in labels:
        if is_coarse(label):
            bits = [label >> number & 1 for number in range(len(classes))]
            counts.append([*(int(bit.sum()) for bit in bits), int((label == 0).sum())])
        else:
            counts.append(np.bincount(label.ravel(), minlength=256)[ids])
    return np.array(counts, np.int64).reshape(-1, len(ids))


def require_every_class(pixels: np.ndarray, classes: ClassList) -> None:
    """Raises InputError where a class of the list never occurs in pixels (images, K + 1).

    Published lists are exempt: no still of CamVid shows all of its 31 classes.
    """
    missing = [name for name, count in zip(classes.names, pixels.sum(0), strict=False) if not count]
    if not missing or classes in CLASS_LISTS.values():
        return
    void = pixels[:, -1].sum() / pixels.sum()
    hint = f"; {void:.1%} of the pixels are void (id {classes.void}): do the masks mark objects by it?" if void else ""
    raise InputError(
        f"no training picture has a pixel of {', '.join(missing)}{hint}; mend the labels or the class list, or train "
        "without by --config allow_missing_classes=true"
    )


def describe_shares(trained: np.ndarray, held_out: np.ndarray, classes: ClassList) -> list[str]:
    """Returns lines of a table and of remarks, from the pixels (images, K + 1) of both sets."""
    width = max(map(len, (*classes.names, "void, of all pixels")))
    lines = [f"{'class':{width}}  pixels  images  held out"]
    sums = [pixels[:, :-1].sum(0) / max(pixels[:, :-1].sum(), 1) for pixels in (trained, held_out)]
    images = (trained > 0).sum(0)
    for number, name in enumerate(classes.names):
        lines.append(f"{name:{width}}  {sums[0][number]:6.2%}  {images[number]:6}  {sums[1][number]:8.2%}")
    void = [pixels[:, -1].sum() / max(pixels.sum(), 1) for pixels in (trained, held_out)]
    lines.append(f"{'void, of all pixels':{width}}  {void[0]:6.2%}  {images[-1]:6}  {void[1]:8.2%}")
    rare = [
        f"{name} ({count} images)"
        for name, share, count in zip(classes.names, sums[0], images, strict=False)
        if count and (share < RARE_SHARE or count < RARE_IMAGES)
    ]
    if rare:
        lines.append(f"rare, so likely to be missed elsewhere: {', '.join(rare)}")
    likeliest = int(sums[0].argmax())
    if len(held_out):
        absent = [name for name, share in zip(classes.names, sums[1], strict=True) if not share]
        if absent:
            lines.append(f"held out: no pixel of {', '.join(absent)}; mIoU leaves them out")
        lines.append(
            f"always answering {classes.names[likeliest]} is right in {sums[1][likeliest]:.1%} of the held-out pixels: "
            "an accuracy near that is worth nothing"
        )
    return lines
