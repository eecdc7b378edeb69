"""Augmented pictures as a training sees them, where its loss is looked at: published Hessians and landscapes are of
these.

Classifiers: the picture, padded by 4 pixels, cropped to its size and flipped with probability 1/2 (CIFAR's published
augmentation, at every size). Segmentation networks: this product's zoom, crop, flip and colours. Neither mixing nor
label smoothing, whatever the network was trained with.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from steadyseg.classification.data.augment import shift
from steadyseg.classification.options import PictureOptions
from steadyseg.core.seeds import mix_seed
from steadyseg.seg.data.augment import Augment, Example
from steadyseg.seg.options import AugmentOptions
from steadyseg.studies.analysis.subjects import StudyTarget


@dataclass(frozen=True)
class TrainingPictures:
    """The augmented pictures of one network: with one seed all networks get the same ones."""

    target: StudyTarget
    seed: int
    augmented: bool = True

    def batch(self, numbers: range) -> tuple[Tensor, Tensor]:
        """Normalised (B, 3, h, w) in plain memory order, and labels (B,) or (B, h, w).

        Not channels last: oneDNN computes the gradient of strided 1x1 convolutions wrongly there
        (github.com/uxlfoundation/oneDNN/issues/6035).
        """
        subject = self.target.subject
        if not self.augmented:
            return self.target.batch(numbers).contiguous(), self.target.truth(numbers)
        pixels, labels = self._segments(numbers) if subject.is_segmentation else self._pictures(numbers)
        return subject.normalize(pixels.to(subject.device)).contiguous(), labels.to(subject.device)

    def _pictures(self, numbers: range) -> tuple[Tensor, Tensor]:
        pictures = self.target.pictures
        stacked = np.stack([pictures.images[number] for number in numbers])
        generator = np.random.default_rng(mix_seed(self.seed, numbers.start))
        published = PictureOptions()
        moved = shift(stacked, generator.integers(0, 2 * published.border + 1, (len(stacked), 2)), published)
        flipped = generator.random(len(stacked)) < 0.5
        moved[flipped] = moved[flipped, :, ::-1]
        return torch.from_numpy(moved).permute(0, 3, 1, 2), pictures.truth(numbers)

    def _segments(self, numbers: range) -> tuple[Tensor, Tensor]:
        subject, pictures = self.target.subject, self.target.pictures
        height, width = subject.size(*pictures.images[0].shape[:2])
        options = AugmentOptions()
        options = replace(
            options, crop_height=min(options.crop_height, height), crop_width=min(options.crop_width, width)
        )
        augment = Augment(options, height, subject.meta.classes.void_id)
        examples = [Example(pictures.images[number], pictures.labels[number]) for number in numbers]
        made = [
            augment(example, mix_seed(self.seed, number)) for example, number in zip(examples, numbers, strict=True)
        ]
        return torch.stack([picture for picture, _ in made]), torch.stack([label for _, label in made])
