"""Resize and normalisation of uint8 frames for training, streaming and export."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.tracing import is_exporting, is_fixed


def mean_and_std(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (3,) of the channels, in 0..1, from the histograms (3, 256) of their levels.

    A constant channel has a standard deviation of 0.001, because pixels are divided by it.
    """
    levels, sizes = np.arange(256) / 255, counts.sum(1)
    mean = counts @ levels / sizes
    return mean, np.sqrt((counts @ levels**2 / sizes - mean**2).clip(1e-6))


def resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, C, H, W) uint8 -> (B, C, h, w) in the same 256 levels, bilinear and antialiased; unchanged if the size is
    right.

    An exported graph computes in float and rounds; the two differ by at most one level.
    """
    if is_fixed(*images.shape[-2:]) and tuple(images.shape[-2:]) == size:
        return images
    if is_exporting():
        grown = F.interpolate(images.float(), size, mode="bilinear", align_corners=False, antialias=True)
        return grown.round().clamp(0.0, 255.0)
    return F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=True)


def enlarge(maps: Tensor, size: tuple[int, int] | torch.Size) -> Tensor:
    """(B, C, ceil(h / s), ceil(w / s)) maps of a network whose head works at stride s -> (B, C, h, w), bilinear.

    Every coarse pixel lies at the centre of the s x s pixels that it stands for.
    """
    if maps.shape[-2:] == tuple(size):
        return maps
    stride = round(size[1] / maps.shape[-1])
    grown = F.interpolate(maps, scale_factor=stride, mode="bilinear", align_corners=False)
    return grown[..., : size[0], : size[1]]


def nearest(labels: Tensor, size: tuple[int, int]) -> Tensor:
    """(B, h, w) -> (B, H, W) by nearest neighbour with half-pixel centres: row i comes from floor((i + 1/2) h / H).

    Computed in integers. Libraries compute it in float and disagree where a centre falls on an edge: at a ratio of 2 to
    3, in every third pixel.
    """
    for dimension, length in zip((1, 2), size, strict=True):
        places = torch.arange(length, device=labels.device)
        labels = labels.index_select(dimension, (2 * places + 1) * labels.shape[dimension] // (2 * length))
    return labels


class Normalize(torch.nn.Module):
    """Maps (B, 3, h, w) values in 0..255, uint8 or float, to (x / 255 - mean) / std."""

    scale: Tensor
    offset: Tensor

    def __init__(self, mean: tuple[float, float, float], std: tuple[float, float, float]) -> None:
        super().__init__()
        mean_, std_ = torch.tensor(mean).view(1, 3, 1, 1), torch.tensor(std).view(1, 3, 1, 1)
        self.register_buffer("scale", 1.0 / (255.0 * std_), persistent=False)
        self.register_buffer("offset", -mean_ / std_, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return images.float() * self.scale + self.offset
