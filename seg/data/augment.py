"""Augmentation of training pictures: zoom, crop, flip, colour jitter and corruptions, drawn from a seed."""

from typing import NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from steadyseg.core.corruptions.corruptions import SEVERITIES, SMALLEST_SIDE, corrupt
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import nearest, resize
from steadyseg.seg.data.rare import paste, place_of
from steadyseg.seg.options import AugmentOptions


class Example(NamedTuple):
    """A labelled picture."""

    image: np.ndarray
    """(H, W, 3) uint8."""
    label: np.ndarray
    """(H, W) uint8 ids, or int64 of `pack_label`."""


class Augment:
    """Callable (example, seed) -> (3, h, w) uint8 and (h, w) int64 tensors."""

    def __init__(self, options: AugmentOptions, height: int, void: int, rare: tuple[int, ...] = ()) -> None:
        self.options, self.height, self.void, self.rare = options, height, void, rare
        self.size = (options.crop_height, options.crop_width)
        self.crop = v2.RandomCrop(self.size, pad_if_needed=True, fill={tv_tensors.Image: 0, tv_tensors.Mask: void})
        self.flip = v2.RandomHorizontalFlip(options.flip)
        self.jitter = v2.ColorJitter(options.brightness, options.contrast, options.saturation)
        if options.corrupt:  # the package may not be there
            corrupt(np.zeros((SMALLEST_SIDE, SMALLEST_SIDE, 3), np.uint8), options.corruptions[0], 1)

    def __call__(self, example: Example, seed: int, other: tuple[Example, int] | None = None) -> tuple[Tensor, Tensor]:
        """Returns the augmented picture and its label.

        `other` is a second example and a rare class in it: its objects of rare classes are pasted into the first.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            picture, target = self._view(example)
            if other:
                picture, target = paste((picture, target), self._view(other[0], (other[1],)), self.rare)
            return self._degrade(picture), target.long()

    def _view(self, example: Example, around: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
        """Zooms, crops, flips and jitters the picture; the crop contains a pixel of a class in `around`, if any."""
        size = self._zoomed(*example.label.shape)
        picture, mask = to_tensors(example.image, example.label, *size)
        parts = [tv_tensors.Image(picture), tv_tensors.Mask(mask)]
        place = place_of(mask, around, self.size) if around else None
        cropped = [v2.functional.crop(part, *place, *self.size) for part in parts] if place else self.crop(*parts)
        picture, mask = (part.as_subclass(Tensor) for part in self.flip(*cropped))
        picture = shift_hue(self.jitter(picture), float(torch.empty(()).uniform_(-self.options.hue, self.options.hue)))
        picture = relight(picture, self.options)
        return picture, mask

    def _degrade(self, picture: Tensor) -> Tensor:
        """Corrupts the picture (3, h, w) uint8 with a probability drawn by torch's generator."""
        options = self.options
        if options.corrupt and float(torch.rand(())) < options.corrupt:
            name = options.corruptions[int(torch.randint(len(options.corruptions), ()))]
            severity, seed = SEVERITIES[int(torch.randint(len(SEVERITIES), ()))], int(torch.randint(2**31, ()))
            worse = corrupt(picture.permute(1, 2, 0).numpy(), name, severity, seed)
            picture = torch.from_numpy(worse).permute(2, 0, 1).contiguous()
        return picture

    def _zoomed(self, height: int, width: int) -> tuple[int, int]:
        low, high = self.options.scale_min, self.options.scale_max
        zoom = float(torch.empty(()).uniform_(low, high)) if high > low else low
        base_height, base_width = network_size(height, width, self.height)
        return round(base_height * zoom), round(base_width * zoom)


def relight(picture: Tensor, options: AugmentOptions) -> Tensor:
    """Changes the light of a picture (3, h, w) uint8: gamma, night, a shadow, and no colours.

    Where all four are off, nothing is drawn, so that a training without them repeats.
    """
    if not (options.gamma or options.night or options.shadow or options.grey):
        return picture
    drawn = torch.rand(9)
    if options.gamma or options.night:
        exponent = (1 + options.gamma) ** float(2 * drawn[0] - 1)
        light = torch.full((3, 1), 1.0)
        if drawn[1] < options.night:
            light *= (0.1 + 0.4 * drawn[2]) * (1 + 0.3 * (drawn[3:6, None] - 0.5))
        levels = ((torch.arange(256) / 255) ** exponent * light * 255).round().clamp(0, 255).to(torch.uint8)
        picture = torch.stack([table[plane.long()] for table, plane in zip(levels, picture, strict=True)])
    if drawn[6] < options.shadow:
        height, width = picture.shape[1:]
        angle, at = 2 * torch.pi * drawn[7], torch.rand(2)
        rows, columns = torch.arange(height)[:, None] - at[0] * height, torch.arange(width) - at[1] * width
        inside = rows * angle.sin() + columns * angle.cos() > 0
        picture = torch.where(inside, (picture * (0.35 + 0.4 * torch.rand(()))).to(torch.uint8), picture)
    if drawn[8] < options.grey:
        picture = v2.functional.rgb_to_grayscale(picture, 3)
    return picture


def shift_hue(picture: Tensor, turns: float) -> Tensor:
    """Turns the hue of a picture (3, h, w) uint8, in 256 steps of the colour circle.

    torchvision's `adjust_hue` in floats takes 8.3 ms for 240x320, more than all other augmentation; this takes 0.4 ms.
    """
    steps = round(256 * turns) % 256
    if not steps:
        return picture
    colours = cv2.cvtColor(picture.permute(1, 2, 0).numpy(), cv2.COLOR_RGB2HSV_FULL)
    colours[..., 0] += np.uint8(steps)  # wraps round, as the circle does
    return torch.from_numpy(cv2.cvtColor(colours, cv2.COLOR_HSV2RGB_FULL)).permute(2, 0, 1).contiguous()


def to_tensors(image: np.ndarray, label: np.ndarray, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Resizes the picture to (3, h, w) uint8 as in deployment, and the label to (h, w) uint8 by nearest neighbour."""
    picture = resize(torch.from_numpy(image).permute(2, 0, 1)[None], (height, width))[0]
    picture = picture.clone(memory_format=torch.contiguous_format)  # resize may return its input
    mask = torch.from_numpy(label)
    if mask.dtype != torch.uint8:
        return picture, nearest(mask[None], (height, width))[0]
    if mask.shape != (height, width):
        mask = torch.nn.functional.interpolate(mask[None, None], (height, width), mode="nearest-exact")[0, 0]
    return picture, mask
