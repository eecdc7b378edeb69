"""Statistics of a training set: colour mean and standard deviation, class frequencies, class weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from core.classes import ClassList
from core.errors import InputError
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


def measure(pairs: Sequence[tuple[np.ndarray, np.ndarray]], classes: ClassList) -> DataStatistics:
    """Computes the statistics in one pass over (image, label) pairs."""
    sums, squares, pixels = np.zeros(3), np.zeros(3), 0
    class_pixels, image_pixels = np.zeros(len(classes)), np.zeros(len(classes))
    for image, label in pairs:
        for channel in range(3):  # a histogram is exact and 8 times faster than a float copy of the image
            histogram = np.bincount(image[..., channel].ravel(), minlength=256)
            sums[channel] += histogram @ np.arange(256.0)
            squares[channel] += histogram @ np.arange(256.0) ** 2
        pixels += label.size
        counts = np.bincount(label.ravel(), minlength=256)[: len(classes)]
        class_pixels += counts
        image_pixels += label.size * (counts > 0)
    if not class_pixels.any():
        raise InputError("the training labels hold no pixel of any class; is this the right class list?")
    mean = sums / pixels
    std = np.sqrt(squares / pixels - mean**2)
    frequency = class_pixels / np.maximum(image_pixels, 1)
    present = frequency > 0
    weights = np.where(present, np.median(frequency[present]) / np.where(present, frequency, 1), 0.0)
    return DataStatistics(_rgb(mean), _rgb(std), tuple(float(weight) for weight in weights))


def class_weights(statistics: DataStatistics, config: SegTrainConfig) -> Tensor:
    """Returns the loss weights (K,): ones, median-frequency weights, or these to the power `soften`."""
    exponent = {"none": 0.0, "softened": config.soften, "median-frequency": 1.0}[config.class_weights]
    return torch.tensor(statistics.median_frequency).pow(exponent)


def _rgb(values: np.ndarray) -> tuple[float, float, float]:
    red, green, blue = (round(float(value) / 255, 6) for value in values)
    return red, green, blue
