"""Everything a user can set about a classifier and its training, as frozen dataclasses; no torch here."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from core.errors import InputError
from core.options import PaddingName, ProbName, require_ranges
from core.training.config import TRAIN_RANGES, TrainConfig

HeadName = Literal["gap", "mlp", "gmaxp", "gmedp", "gap-clip", "gap-mlp", "bn-gap"]


@dataclass(frozen=True)
class ClassifierOptions:
    """A classifier by name, with what the methods add to it; None leaves a choice to the family, as published."""

    model: str = "resnet18"
    """Family and depth (resnet18, vgg16, alternet50, ...; `steadyseg models` lists them), or timm:NAME."""
    width: int = 64
    """Channels of the first stage (published: 64); the later ones and the MLP head's are multiples of it."""
    stem: bool = False
    """True: 7x7 stride 2 and a pooling layer, for ImageNet's sizes; False: 3x3 stride 1, for CIFAR's."""
    head: HeadName | None = None
    """gap, mlp, gmaxp, gmedp: global average, MLP, global max and median pooling; gap-clip: the average, bounded by
    a sigmoid; gap-mlp: the average, then the MLP; bn-gap: BatchNorm, ReLU, average. The family's published one without
    it."""
    dropout: float = 0.0
    """MC dropout rate (published: 0.3 on CIFAR, 0.1 for AlexNet, 0.05 on ImageNet); 0 makes no dropout layer at all."""
    smoothing: bool = False
    """Spatial smoothing after the stages, before each subsampling layer and the classifier."""
    smoothing_places: tuple[int, ...] | None = None
    """Numbers of the stages that are smoothed, from 1; the family's published ones without it."""
    prob: ProbName = "tanh"
    """The Prob function of the smoothing."""
    blur: int = 2
    """The blur size of the smoothing: 1, 2, 3 or 5."""
    padding: PaddingName | None = None
    """published: the k = 2 blur grows the map by one; same: it does not. Without it published in our networks and same
    in timm's, whose maps keep their sizes."""
    stochastic_depth: float = 0.0
    """Probability at which the last residual branch is left out in training; it rises linearly from 0 at the first."""
    attention: tuple[int, ...] | None = None
    """AlterNet: attention blocks in each of the four stages; the layout of the stem (CIFAR or ImageNet) without it."""
    window: int | None = None
    """AlterNet: side of the attention windows in points of the map; 4 for CIFAR's layout, 7 for ImageNet's without
    it."""
    img_size: int | None = None
    """timm: side of the pictures the network is built for, in pixels, where the network has that option."""
    patch_size: int | None = None
    """timm: side of the patches in pixels, where the network has that option."""
    pretrained: bool = False
    """timm: start from the library's pretrained weights (needs a network connection)."""


@dataclass(frozen=True)
class PictureOptions:
    """How a training picture is varied."""

    crop: Literal["pad", "resized"] = "pad"
    """pad: a crop of the picture padded by 4 pixels (CIFAR); resized: a random part, resized (ImageNet)."""
    flip: float = 0.5
    """Probability of a left-right flip."""
    rand_augment: str = ""
    """timm's RandAugment by its configuration string, such as rand-m9-n2-mstd1.0; empty: none."""
    erasing: float = 0.0
    """Probability of random erasing."""
    mixup: float = 0.0
    """Alpha of mixup; 0: none."""
    cutmix: float = 0.0
    """Alpha of CutMix; 0: none. With both, one of them is drawn for every batch."""
    label_smoothing: float = 0.0
    """Share of the label that is spread over all classes."""


@dataclass(frozen=True)
class ClassTrainConfig:
    """One classification training, whole: data, network, pictures and loop."""

    data: Path = Path("cifar10")
    """Folder of CIFAR-10 or CIFAR-100 (the pickles of the python version), or an ImageFolder with train/CLASS/*.jpg."""
    classifier: ClassifierOptions = field(default_factory=ClassifierOptions)
    """The network."""
    size: int = 0
    """Side in pixels of what the network sees; 0: 32 for CIFAR, 224 for an ImageFolder."""
    fraction: float = 1.0
    """Share of every class's training pictures that is used (published small-data studies: 0.02 and 0.06)."""
    hold_back: float = 0.0
    """Share of every class's training pictures that is never trained on but evaluated while training runs."""
    workers: int = 1
    """Processes that prepare batches."""
    pictures: PictureOptions = field(default_factory=PictureOptions)
    """How training pictures are varied."""
    loop: TrainConfig = field(default_factory=TrainConfig)
    """The training loop."""


PICTURE_RANGES: dict[str, tuple[float, float]] = {
    "flip": (0, 1),
    "erasing": (0, 1),
    "mixup": (0, math.inf),
    "cutmix": (0, math.inf),
    "label_smoothing": (0, 1),
}


def check_class_training(config: ClassTrainConfig) -> None:
    """InputError for the first setting that makes no sense."""
    require_ranges(config, {"size": (0, math.inf), "fraction": (0, 1), "hold_back": (0, 0.9), "workers": (0, math.inf)})
    require_ranges(config.pictures, PICTURE_RANGES)
    require_ranges(config.loop, TRAIN_RANGES)
    if (config.pictures.mixup or config.pictures.cutmix) and config.loop.batch_size % 2:
        raise InputError(
            f"mixup and cutmix mix a batch's first picture with its last one and so on, so --batch-size must be "
            f"even, got "
            f"{config.loop.batch_size}"
        )


MIXED = PictureOptions(rand_augment="rand-m9-n2-mstd1.0", mixup=1.0, cutmix=0.8, label_smoothing=0.1)
"""The strong augmentation of arXiv 2202.06709 as it is for CIFAR."""

CLASS_PRESETS: dict[str, ClassTrainConfig] = {
    "small": ClassTrainConfig(
        classifier=ClassifierOptions(width=32),
        loop=TrainConfig(
            epochs=40,
            batch_size=64,
            optimizer="sgd",
            learning_rate=0.1,
            weight_decay=5e-4,
            clip_norm=0.0,
        ),
    ),
    "sgd": ClassTrainConfig(
        loop=TrainConfig(
            epochs=201,
            batch_size=128,
            optimizer="sgd",
            learning_rate=0.1,
            weight_decay=5e-4,
            schedule="step",
            warmup=1 / 201,
            step_epochs=(61, 121, 161),
            step_factor=0.2,
            clip_norm=0.0,
            average_decay=0.0,
        ),
    ),
    "sgd-imagenet": ClassTrainConfig(
        classifier=ClassifierOptions(stem=True),
        pictures=PictureOptions(crop="resized"),
        loop=TrainConfig(
            epochs=91,
            batch_size=256,
            optimizer="sgd",
            learning_rate=0.1,
            weight_decay=1e-4,
            schedule="step",
            warmup=1 / 91,
            step_epochs=(31, 61, 81),
            step_factor=0.1,
            clip_norm=0.0,
            average_decay=0.0,
        ),
    ),
    "adamw": ClassTrainConfig(
        classifier=ClassifierOptions(stochastic_depth=0.1),
        pictures=MIXED,
        loop=TrainConfig(
            epochs=305,
            batch_size=96,
            optimizer="adamw",
            learning_rate=1.25e-4,
            weight_decay=0.05,
            warmup=5 / 305,
            clip_norm=5.0,
            average_decay=0.0,
        ),
    ),
    "adamw-imagenet": ClassTrainConfig(
        classifier=ClassifierOptions(stem=True, stochastic_depth=0.1),
        pictures=replace(MIXED, crop="resized", rand_augment="rand-m9-n2-mstd0.5", erasing=0.25),
        loop=TrainConfig(
            epochs=305,
            batch_size=128,
            optimizer="adamw",
            learning_rate=1.25e-4,
            weight_decay=0.05,
            warmup=5 / 305,
            clip_norm=0.0,
            average_decay=0.0,
        ),
    ),
}
"""small: for some thousand pictures on two cores. 5,000 make 3,120 steps of 64 in 40 epochs; 1,560 of 128 take as long
and learn less (six epochs of ResNet-18 of width 8 on 4,500 of CIFAR-10: 38 % of the held-back pictures right instead of
44 %).

The others are the published trainings (arXiv 2105.12639 A.1 and 2202.06709): sgd and adamw for CIFAR, *-imagenet for
ImageNet; their epochs count the published warm-up of one epoch, or five, that comes before. Where paper and code part,
the code is followed, as the published figures are its: the CIFAR rate falls at 60, 120 and 160 (paper: 60, 130, 160),
ImageNet's by 0.1 with weight decay 1e-4 (paper: 0.2 and 5e-4 for all). Unlike there, biases and normalisation take no
weight decay."""
