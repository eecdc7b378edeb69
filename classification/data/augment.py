"""Augmentation of training pictures: crop, flip, RandAugment, erasing and mixing, drawn from a seed."""

import random
import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms import v2

from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.options import PictureOptions
from steadyseg.core.errors import InputError
from steadyseg.core.seeds import keep_generators, mix_seed

RAND_AUGMENT = re.compile(r"rand(-(t(weights|3aw?)|(m|n|mmax|inc)\d+|(p|mstd)\d+(\.\d+)?))*")
"""Parts of a configuration string that timm reads; it would skip other parts silently."""


class Augment(Dataset[tuple[Tensor, Tensor]]):
    """Augmented batches by (epoch, samples): crop and flip of all pictures at once (0.3 ms for 64 of CIFAR's), the rest
    one by one."""

    def __init__(
        self, options: PictureOptions, images: ClassificationSet, size: int, mean: tuple[float, ...], seed: int
    ) -> None:
        self.options, self.images, self.size, self.seed = options, images, size, seed
        self.resized = v2.RandomResizedCrop((size, size))
        self.policy = rand_augment(options.rand_augment, mean)

    def __getitem__(self, key: tuple[int, Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Returns the pictures (B, 3, s, s) uint8 and the class ids (B,), a function of seed, epoch and samples."""
        epoch, chosen = key
        seeds = partial(mix_seed, self.seed, epoch)
        with keep_generators():
            pictures = np.stack([self._view(self.images[index][0], seeds(index)) for index in chosen])
            shifts, flips = self._draws(epoch)
            if self.options.crop != "resized":
                pictures = shift(pictures, shifts[chosen], self.options)
            pictures[flips[chosen]] = pictures[flips[chosen], :, ::-1]
            if self.policy is not None:
                for place, index in enumerate(chosen):
                    seed_python(seeds(index))
                    pictures[place] = np.asarray(self.policy(Image.fromarray(pictures[place])))
        labels = torch.from_numpy(self.images.labels[np.asarray(chosen)])
        return torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous(), labels

    def _view(self, image: np.ndarray, seed: int) -> np.ndarray:
        if self.options.crop != "resized":
            return self.images.evaluation_view(image, self.size)
        torch.default_generator.manual_seed(seed)
        return np.asarray(self.resized(Image.fromarray(image)))

    def _draws(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Draws the row and column of every sample's crop (N, 2), and its flip (N,)."""
        generator = np.random.default_rng(mix_seed(self.seed, epoch))
        shifts = generator.integers(0, 2 * self.options.border + 1, (len(self.images), 2))
        if not self.options.alternate:
            return shifts, generator.random(len(self.images)) < self.options.flip
        first = np.random.default_rng(mix_seed(self.seed)).random(len(self.images)) < self.options.flip
        return shifts, first ^ (epoch % 2 == 1)


def shift(pictures: np.ndarray, corners: np.ndarray, options: PictureOptions) -> np.ndarray:
    """Crops (B, s, s, C) pictures, after padding, to their size; corners (B, 2): row and column in 0..2 * border."""
    count, side = pictures.shape[:2]
    around = (options.border, options.border)
    padded = np.pad(pictures, ((0, 0), around, around, (0, 0)), "reflect" if options.crop == "reflect" else "constant")
    rows, columns = (corners[:, axis, None] + np.arange(side) for axis in (0, 1))  # (B, s) each
    return padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


class Mixing:
    """Random erasing, then mixup or CutMix, of a normalised batch on its device, in place."""

    def __init__(self, options: PictureOptions, num_classes: int, seed: int) -> None:
        from timm.data.mixup import Mixup
        from timm.data.random_erasing import RandomErasing

        self.seed = seed
        # Erased parts get the mean colour, which is 0 after normalisation, as in the published training.
        self.erase = RandomErasing(options.erasing, mode="const", device="cpu") if options.erasing else None
        smoothing = options.label_smoothing
        mixer = Mixup(options.mixup, options.cutmix, label_smoothing=smoothing, num_classes=num_classes)
        self.mix = mixer if options.mixup or options.cutmix else None

    def __call__(self, pictures: Tensor, labels: Tensor, epoch: int, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Takes normalised pictures (B, 3, s, s) and ids (B,); returns both, or mixed pictures and shares (B, K)."""
        with keep_generators():
            if self.erase is not None:
                for picture, index in zip(pictures, chosen, strict=True):
                    seed_python(mix_seed(self.seed, epoch, index, 1))
                    self.erase(picture)
            if self.mix is None:
                return pictures, labels
            seed_python(mix_seed(self.seed, epoch, chosen[0], 2))
            return self.mix(pictures, labels)


def rand_augment(text: str, mean: tuple[float, ...]) -> Callable[[Image.Image], Image.Image] | None:
    """Returns timm's RandAugment (arXiv 1909.13719) of a configuration string, with the mean colour (0..1) as fill."""
    if not text:
        return None
    from timm.data.auto_augment import rand_augment_transform

    if not RAND_AUGMENT.fullmatch(text):
        raise InputError(f"--rand-augment {text!r} is none of timm's; expected parts such as rand-m9-n2-mstd0.5")
    return rand_augment_transform(text, {"img_mean": tuple(round(255 * value) for value in mean)})


def seed_python(seed: int) -> None:
    """Seeds Python's and NumPy's global generators, from which timm draws."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
