"""Classifier heads: the last map (B, C, H, W) -> logits (B, K)."""

import torch
from torch import Tensor, nn

from steadyseg.classification.networks.chain import MaxPool
from steadyseg.classification.options import HeadName
from steadyseg.core.errors import InputError

MLP_DROPOUT = 0.5
"""Rate of the MLP head's ordinary dropout, which is off at test time, unlike MC dropout (arXiv 1409.1556, Sec. 3.1)."""


HEAD_SIDE = 7
"""Side of the MLP head's average pooling, equal to the side of a 224 x 224 picture's last map."""


class GlobalMedian(nn.Module):
    """(B, C, H, W) -> (B, C): the floor(HW / 2)-th largest value of each channel, an upper median (HW >= 2)."""

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        if height * width < 2:
            raise InputError(
                f"global median pooling needs a last map of two or more points, got {height} x {width}; "
                "use larger pictures or another head"
            )
        return x.flatten(2).topk(height * width // 2, dim=-1).values[..., -1]


class BoundFeatures(nn.Module):
    """Bounds pooled features to [-t / 2, t / 2] by t (sigmoid(x / t) - 1/2); t = 2 as in the published code."""

    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * (torch.sigmoid(x / self.scale) - 0.5)


def head(name: HeadName, channels: int, num_classes: int, hidden: int = 0, side: int = 1, pool: int = 0) -> nn.Module:
    """Builds a head by its name; `hidden`, `side` and `pool` belong to the MLP.

    Other heads (gap, gap-clip, gmaxp, gmedp, bn-gap) are one number per channel, then a linear layer.
    """
    if name == "mlp":
        return mlp_head(channels, num_classes, hidden, side, pool)
    if name == "gap-mlp":
        return mlp_head(channels, num_classes, hidden, side=1)
    average = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    pooling: dict[HeadName, list[nn.Module]] = {
        "gmedp": [GlobalMedian()],
        "gmaxp": [nn.AdaptiveMaxPool2d(1), nn.Flatten()],
        "gap-clip": [*average, BoundFeatures()],
        "bn-gap": [nn.BatchNorm2d(channels), nn.ReLU(inplace=True), *average],
    }
    return nn.Sequential(*pooling.get(name, average), nn.Linear(channels, num_classes))


def mlp_head(channels: int, num_classes: int, hidden: int, side: int, pool: int = 0) -> nn.Module:
    """Max pooling (kernel `pool`, stride 2; 0: none), average pooling to side x side, two hidden layers with dropout.

    Published: hidden 4096, side 7 (AlexNet: 6 or 2). VGG and AlexNet pool first, ResNets do not.
    """
    first = [MaxPool(pool)] if pool else []
    return nn.Sequential(
        *first,
        nn.AdaptiveAvgPool2d(side),
        nn.Flatten(),
        nn.Linear(channels * side**2, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(MLP_DROPOUT),
        nn.Linear(hidden, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(MLP_DROPOUT),
        nn.Linear(hidden, num_classes),
    )
