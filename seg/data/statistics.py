"""Statistics of a training set: colour mean and standard deviation, class frequencies, class weights."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from core.classes import ClassList
from core.errors import InputError
from seg.data.shares import count_pixels
from seg.options import SegTrainConfig


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
    sums, squares, counts = np.zeros(3), np.zeros(3), []
    for image, label in pairs:
        for channel in range(3):  # a histogram is exact and 8 times faster than a float copy of the image
            histogram = np.bincount(image[..., channel].ravel(), minlength=256)
            sums[channel] += histogram @ np.arange(256.0)
            squares[channel] += histogram @ np.arange(256.0) ** 2
        counts.append(count_pixels([label], classes))
    pixels = np.concatenate(counts)
    sizes, of_class = pixels.sum(1), pixels[:, :-1]
    if not of_class.any():
        raise InputError("the training labels hold no pixel of any class; is this the right class list?")
    mean = sums / sizes.sum()
    std = np.sqrt(squares / sizes.sum() - mean**2)
    frequency = of_class.sum(0) / np.maximum(sizes @ (of_class > 0), 1)
    present = frequency > 0
    weights = np.where(present, np.median(frequency[present]) / np.where(present, frequency, 1), 0.0)
    return DataStatistics(_rgb(mean), _rgb(std), tuple(float(weight) for weight in weights), pixels)


def class_weights(statistics: DataStatistics, config: SegTrainConfig) -> Tensor:
    """Returns the loss weights (K,): ones, median-frequency weights, or these to the power `soften`."""
    exponent = {"none": 0.0, "softened": config.soften, "median-frequency": 1.0}[config.class_weights]
    return torch.tensor(statistics.median_frequency).pow(exponent)


def _rgb(values: np.ndarray) -> tuple[float, float, float]:
    red, green, blue = (round(float(value) / 255, 6) for value in values)
    return red, green, blue
