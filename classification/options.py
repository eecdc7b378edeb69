"""Settings of classifiers and their training, with presets; no torch here, so that help is instant."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from steadyseg.core.errors import InputError
from steadyseg.core.options import PaddingName, ProbName, Rare, require_ranges
from steadyseg.core.training.config import TRAIN_RANGES, TrainConfig

HeadName = Literal["gap", "mlp", "gmaxp", "gmedp", "gap-clip", "gap-mlp", "bn-gap", "cls"]


@dataclass(frozen=True)
class ClassifierOptions:
    """Options of a classifier; an option of None is as published for the network's family."""

    network: str = "resnet18"
    """Network by family and depth (resnet18, vgg16, alternet50, ...; `models` lists them), or timm:NAME."""
    channels: int = 64
    """Channels of the first stage (published: 64; vit 192, swin 96); later stages and the MLP head have multiples."""
    stem: Rare[bool] = False
    """Begin with a 7x7 convolution of stride 2 and pooling, for ImageNet's sizes; else 3x3, stride 1, for CIFAR's."""
    head: Rare[HeadName | None] = None
    """Global pooling: gap (average), gmaxp (max), gmedp (median), gap-clip (average bounded by a sigmoid), bn-gap
    (BatchNorm, ReLU, average). Other heads: mlp (MLP), gap-mlp (average, MLP), cls (class token of a transformer)."""
    dropout: float = 0.0
    """MC dropout rate (published: 0.3 on CIFAR, 0.1 for AlexNet, 0.05 on ImageNet); 0: no dropout layers."""
    smoothing: bool = False
    """Spatial smoothing after the stages, before each subsampling layer and the head."""
    smoothing_places: Rare[tuple[int, ...] | None] = None
    """Numbers of the smoothed stages, from 1."""
    prob: Rare[ProbName] = "tanh"
    """The Prob function of the smoothing."""
    prob_scale: Rare[float | None] = None
    """Parameter t of the Prob function (arXiv 2105.12639, Fig. B.1 varies t of tanh)."""
    blur: Rare[int] = 2
    """The blur size of the smoothing: 1, 2, 3 or 5."""
    padding: Rare[PaddingName | None] = None
    """published: the blur of size 2 grows the map by one; same: the size stays. auto: published in our networks, same
    in timm's."""
    stochastic_depth: Rare[float] = 0.0
    """Probability that training skips the last residual branch; it rises linearly from 0 at the first."""
    attention: Rare[tuple[int, ...] | None] = None
    """AlterNet: attention blocks in each of the four stages."""
    attention_window: Rare[int | None] = None
    """AlterNet, swin: side of the attention windows in points of the map (published: 4 for CIFAR, 7 for ImageNet). The
    patches of a vit attend to a square of this side, in patches, around them; by default to all."""
    img_size: Rare[int | None] = None
    """vit, pit, timm: side of the network's input in pixels, where the network has that option (vit, pit: 32)."""
    patch_size: Rare[int | None] = None
    """vit, pit, swin, timm: side of the patches in pixels, where the network has that option (vit, pit: 2; swin: 1)."""
    pretrained: Rare[bool] = False
    """timm: begin with the library's pretrained weights (needs a network connection)."""


@dataclass(frozen=True)
class PictureOptions:
    """Augmentation of training images."""

    crop: Rare[Literal["pad", "reflect", "resized"]] = "pad"
    """pad (CIFAR), reflect: crop of the image with a black or mirrored border; resized (ImageNet): random part."""
    border: Rare[int] = 4
    """Width of the border in pixels."""
    flip: Rare[float] = 0.5
    """Probability of a left-right flip."""
    alternate: Rare[bool] = False
    """The first epoch's flip is random, with probability `flip`; from then on it changes in every epoch (arXiv
    2404.00498)."""
    rand_augment: Rare[str] = ""
    """Configuration string of timm's RandAugment, such as rand-m9-n2-mstd1.0; empty: none."""
    erasing: Rare[float] = 0.0
    """Probability of random erasing."""
    mixup: Rare[float] = 0.0
    """Alpha of mixup; 0: none."""
    cutmix: Rare[float] = 0.0
    """Alpha of CutMix; 0: none. With both, one of them is drawn for every batch."""
    label_smoothing: Rare[float] = 0.0
    """Share of the label that is spread over all classes."""


@dataclass(frozen=True)
class ClassTrainConfig:
    """Configuration of a classification training: data, network, augmentation and loop."""

    data: Path = Path("cifar10")
    """Folder of CIFAR-10 or CIFAR-100 (the pickles of the Python version), or with train/CLASS/*.jpg or the class
    folders in train.zip."""
    classifier: ClassifierOptions = field(default_factory=ClassifierOptions)
    """The network."""
    init: Rare[str | None] = None
    """Pretrained name or .safetensors file to start from; the last layer is random if the classes differ."""
    size: Rare[int] = 0
    """Side of the network's input in pixels; 0: 32 for CIFAR, 224 for an image folder, the pictures' own for
    archives."""
    hold_out: float = 0.0
    """Share of the training images of every class that is held out: never trained on, evaluated while training runs."""
    loaders: Rare[int] = 1
    """Processes that load batches."""
    pictures: PictureOptions = field(default_factory=PictureOptions)
    """Augmentation of the training images."""
    loop: TrainConfig = field(default_factory=TrainConfig)
    """The training loop."""


PICTURE_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("flip", "erasing", "label_smoothing"), (0, 1)),
    **dict.fromkeys(("mixup", "cutmix"), (0, math.inf)),
    "border": (0, 32),
}


def check_class_training(config: ClassTrainConfig) -> None:
    """Raises InputError for the first setting that makes no sense."""
    require_ranges(config, {**dict.fromkeys(("size", "loaders"), (0.0, math.inf)), "hold_out": (0, 0.9)})
    require_ranges(config.pictures, PICTURE_RANGES)
    require_ranges(config.loop, TRAIN_RANGES)
    if (config.pictures.mixup or config.pictures.cutmix) and config.loop.batch_size % 2:
        raise InputError(
            "mixup and cutmix mix a batch's first picture with its last one and so on, so --batch-size must be even, "
            f"got {config.loop.batch_size}"
        )


MIXED = PictureOptions(rand_augment="rand-m9-n2-mstd1.0", mixup=1.0, cutmix=0.8, label_smoothing=0.1)
"""The strong augmentation of arXiv 2202.06709 for CIFAR."""

SGD = TrainConfig(optimizer="sgd", learning_rate=0.1, weight_decay=5e-4, clip_norm=0.0)
SGD_STEPS = replace(
    SGD,
    epochs=201,
    batch_size=128,
    schedule="step",
    warmup=1 / 201,
    step_epochs=(61, 121, 161),
    step_factor=0.2,
    average_decay=0.0,
)
IMAGENET_STEPS = replace(
    SGD_STEPS, epochs=91, batch_size=256, weight_decay=1e-4, warmup=1 / 91, step_epochs=(31, 61, 81), step_factor=0.1
)
ADAMW = TrainConfig(
    epochs=305,
    batch_size=96,
    learning_rate=1.25e-4,
    weight_decay=0.05,
    warmup=5 / 305,
    clip_norm=5.0,
    average_decay=0.0,
)

FAST = replace(
    SGD,
    optimizer="nesterov",
    schedule="triangle",
    epochs=10,
    batch_size=128,
    learning_rate=0.15,
    weight_decay=8e-4,
    warmup=0.2,
    average_decay=0.99,
)

CLASS_PRESETS: dict[str, ClassTrainConfig] = {
    "small": ClassTrainConfig(classifier=ClassifierOptions(channels=32), loop=replace(SGD, epochs=40, batch_size=64)),
    "fast": ClassTrainConfig(
        classifier=ClassifierOptions(channels=16),
        pictures=PictureOptions(crop="reflect", border=2, alternate=True, label_smoothing=0.1),
        loop=FAST,
    ),
    "sgd": ClassTrainConfig(loop=SGD_STEPS),
    "sgd-imagenet": ClassTrainConfig(
        classifier=ClassifierOptions(stem=True), pictures=PictureOptions(crop="resized"), loop=IMAGENET_STEPS
    ),
    "adamw": ClassTrainConfig(classifier=ClassifierOptions(stochastic_depth=0.1), pictures=MIXED, loop=ADAMW),
    "adamw-imagenet": ClassTrainConfig(
        classifier=ClassifierOptions(stem=True, stochastic_depth=0.1),
        pictures=replace(MIXED, crop="resized", rand_augment="rand-m9-n2-mstd0.5", erasing=0.25),
        loop=replace(ADAMW, batch_size=128, clip_norm=0.0),
    ),
}
"""small: for some thousand images on two cores. The 40 epochs of 5,000 images have 3,120 steps of 64; 1,560 steps of
128 take as long and learn less (six epochs of ResNet-18 with 8 channels on 4,500 images of CIFAR-10: 38 % instead of 44
% accuracy on the held-out images).

fast: all of CIFAR-10 in few epochs: Nesterov's momentum, linear warm-up and fall, label smoothing, small shifts with a
reflecting border, alternating flips. Rate per picture, and rate times decay, lie between the values of airbench (arXiv
2404.00498) and David Page's "How to train your ResNet".

The others are the published trainings (arXiv 2105.12639 A.1 and 2202.06709): sgd and adamw for CIFAR, *-imagenet for
ImageNet. Their epochs include the published warm-up of one epoch (sgd) or five (adamw). Where paper and code differ we
follow the code, which gave the published metrics. The CIFAR rate falls at 60, 120 and 160 (paper: 60, 130, 160).
ImageNet has a factor of 0.1 and weight decay 1e-4 (paper: 0.2 and 5e-4 for all). Unlike in the papers, biases and
normalisation have no weight decay."""
