"""A network that answers one picture with NaN or infinity, and pictures between which nothing moves."""

from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout
from steadyseg.core.frame import Frame

HEIGHT, WIDTH, CLASSES = 32, 64, 4
POISON = (255, 39, 6)


class Poisoned(nn.Module):
    """Logits from each pixel's colour, the first spoilt if it is `POISON`; the dropout masks change nothing."""

    def __init__(self, value: str = "nan", stride: int = 1) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.dropout, self.value, self.head_stride = Dropout(0.5), value, stride
        self.layer = nn.Conv2d(3, CLASSES, 1)
        nn.init.normal_(self.layer.weight, std=9.0)
        self.layer.weight.data -= self.layer.weight.data.mean(1, keepdim=True)  # all pictures have one brightness

    def forward(self, image: Tensor) -> Tensor:
        logits: Tensor = self.layer(F.avg_pool2d(image + self.dropout(image * 0.0), self.head_stride))
        red = 100.0 * F.relu(image[:, :1, :1, :1] - 0.99)  # 0, or 1 where the pixel is POISON
        spoilt = torch.log(1.0 - 2.0 * red) if self.value == "nan" else torch.exp(1e3 * red) - 1.0
        height, width = HEIGHT // self.head_stride, WIDTH // self.head_stride
        return logits + F.pad(spoilt, (0, width - 1, 0, height - 1))


def pictures(count: int, bad: int, seed: int = 0) -> list[Frame]:
    """Blocks of random colours of one brightness, by which nothing moves and no scene is cut."""
    red, green = (one.ravel() for one in np.meshgrid(np.arange(251), np.arange(256)))
    colours = np.stack([red, green, 300 - red - green], -1)
    colours = colours[(colours.min(1) >= 0) & (colours.max(1) <= 255)].astype(np.uint8)
    colours = colours[cv2.cvtColor(colours[None], cv2.COLOR_RGB2GRAY)[0] == 100]
    generator = np.random.default_rng(seed)
    frames = []
    for index in range(count):
        places = generator.integers(len(colours), size=(HEIGHT // 4, WIDTH // 4))
        image = colours[places.repeat(4, 0).repeat(4, 1)]
        image[0, 0] = POISON if index == bad else image[0, 1]
        frames.append(Frame(image, index, index / 25))
    return frames


def without(frames: list[Any], bad: int) -> list[Any]:
    """The frames but the spoilt one."""
    return [frame for frame in frames if frame.index != bad]
