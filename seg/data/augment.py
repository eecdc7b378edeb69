"""Training pictures: zoom, crop, flip and colour jitter, every draw derived from (seed, epoch, sample)."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from core.preprocess import network_size, resize
from seg.options import AugmentOptions


class Augment:
    """Callable (image (H, W, 3) uint8, label (H, W) uint8, seed) -> (3, h, w) uint8 and (h, w) int64 tensors."""

    def __init__(self, options: AugmentOptions, height: int, void: int) -> None:
        self.options, self.height, self.void = options, height, void
        self.crop = v2.RandomCrop(
            (options.crop_height, options.crop_width),
            pad_if_needed=True,
            fill={tv_tensors.Image: 0, tv_tensors.Mask: void},
        )
        self.flip = v2.RandomHorizontalFlip(options.flip)
        self.jitter = v2.ColorJitter(options.brightness, options.contrast, options.saturation, options.hue)

    def __call__(
        self, image: np.ndarray, label: np.ndarray, seed: int, taught: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`taught` (K, h, w) uint8 goes where the label goes; the target is then (1 + K, h, w) uint8, label first."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            size = self._zoomed(image.shape[0], image.shape[1])
            picture, mask = to_tensors(image, label, *size)
            parts = [tv_tensors.Image(picture), tv_tensors.Mask(mask)]
            if taught is not None:
                enlarged = F.interpolate(taught[None], size, mode="bilinear", align_corners=False)
                parts.append(tv_tensors.Image(enlarged[0]))  # padded with zeros: no teaching there
            picture, mask, *rest = (part.as_subclass(Tensor) for part in self.flip(*self.crop(*parts)))
            return self.jitter(picture), torch.cat([mask[None], *rest]) if rest else mask.long()

    def _zoomed(self, height: int, width: int) -> tuple[int, int]:
        low, high = self.options.scale_min, self.options.scale_max
        zoom = float(torch.empty(()).uniform_(low, high)) if high > low else low
        base_height, base_width = network_size(height, width, self.height)
        return round(base_height * zoom), round(base_width * zoom)


def to_tensors(image: np.ndarray, label: np.ndarray, height: int, width: int) -> tuple[Tensor, Tensor]:
    """(3, h, w) uint8 by the product's own resize, and (h, w) uint8 by nearest neighbour."""
    picture = resize(torch.from_numpy(image).permute(2, 0, 1)[None], (height, width))[0]
    picture = picture.clone(memory_format=torch.contiguous_format)  # a picture of the right size is the source itself
    mask = torch.from_numpy(label)[None, None]
    if mask.shape[-2:] != (height, width):
        mask = torch.nn.functional.interpolate(mask, (height, width), mode="nearest-exact")
    return picture, mask[0, 0]
