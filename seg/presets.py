"""Presets of segmentation trainings; no torch here, so that help is instant."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyseg.core.training.config import TrainConfig
from steadyseg.seg.options import UNET_PAPER, AugmentOptions, SegTrainConfig, SmpOptions, UNetOptions

LONG = SegTrainConfig(
    auxiliary=0.4,
    full_image_epochs=120,
    unzoomed_epochs=40,
    augment=AugmentOptions(crop_height=240, crop_width=320, scale_min=0.75, scale_max=2.0, corrupt=0.25, paste=0.3),
    loop=TrainConfig(epochs=600, weight_decay=1e-2, warmup=0.1, evaluate_every=20),
)
REALTIME = SmpOptions(
    encoder="tu-efficientnet_lite0",
    encoder_weights="imagenet",
    decoder_channels=(96, 48, 32, 16, 16),
    head_stride=2,
    decoder_dropout=0.1,
    encoder_dropout=0.1,
    encoder_linear_prob="none",
)
LONG_SMP = replace(
    LONG,
    network="smp",
    smp=REALTIME,
    augment=replace(LONG.augment, corrupt=0.15),
    full_image_epochs=16,
    unzoomed_epochs=8,
    loop=TrainConfig(epochs=96, weight_decay=2e-2, learning_rate=1.5e-3, warmup=0.1, evaluate_every=4),
)


def on_any_road(config: SegTrainConfig) -> SegTrainConfig:
    """Returns the training that goes on from a preset's network (--init) with other people's roads (`steadyseg data
    roads`)."""
    wider = replace(config.augment, scale_min=0.6, gamma=0.5, night=0.05, grey=0.05, shadow=0.15)
    return replace(
        config,
        also=("roads/idd-lite", "roads/labelmefacade"),
        keep_initial=0.3,
        auxiliary=0.0,
        full_image_epochs=1,
        unzoomed_epochs=0,
        augment=wider,
        loop=replace(config.loop, epochs=7, batch_size=12, learning_rate=1e-3, evaluate_every=2),
    )


STREET_EPOCHS = 10
"""Epochs of the street; they have as many crops as 36 epochs of CamVid."""

PRESETS: dict[str, SegTrainConfig] = {
    "cpu": SegTrainConfig(unet=UNetOptions(dropout=0.2)),
    "unet-s": replace(LONG, unet=UNetOptions(dropout=0.2, prob="relu6")),
    "realtime": LONG_SMP,
    "mobile": replace(
        LONG_SMP,
        size=224,
        smp=replace(REALTIME, decoder_channels=(48, 32, 16, 12)),
        augment=replace(LONG_SMP.augment, crop_height=160, crop_width=224),
        full_image_epochs=32,
        unzoomed_epochs=16,
        loop=replace(LONG_SMP.loop, epochs=110, batch_size=12, learning_rate=2.5e-3, evaluate_every=10),
    ),
    "replica": SegTrainConfig(
        unet=UNET_PAPER,
        class_weights="median-frequency",
        augment=AugmentOptions(
            crop_height=320, crop_width=448, scale_min=1.0, scale_max=1.0, brightness=0, contrast=0, saturation=0, hue=0
        ),
        loop=TrainConfig(
            epochs=130,
            batch_size=3,
            optimizer="adam",
            learning_rate=1e-3,
            weight_decay=0.0,
            schedule="step",
            warmup=0.0,
            clip_norm=0.0,
            average_decay=0.0,
        ),
    ),
}
"""Preset cpu is a U-Net for two cores, unet-s the same network with a longer training. Presets realtime and mobile
begin with EfficientNet-Lite0's ImageNet weights: realtime keeps up with a camera on two cores, mobile is for browsers
and boards. Preset replica is the published CamVid training, which does not state crop size and weights."""


def on_the_street(config: SegTrainConfig) -> SegTrainConfig:
    """Returns the training that a preset begins with: its network on 1,140 pictures of the synthetic street."""
    return replace(
        config,
        data=Path("street"),
        full_image_epochs=0,
        unzoomed_epochs=0,
        augment=replace(config.augment, paste=0.0),
        loop=replace(config.loop, epochs=STREET_EPOCHS, evaluate_every=1),
    )


PRESETS |= {f"{name}-street": on_the_street(PRESETS[name]) for name in ("unet-s", "realtime", "mobile")}
PRESETS |= {f"road-{name}": on_any_road(PRESETS[name]) for name in ("mobile", "realtime")}
PRESETS["road-realtime"] = replace(
    PRESETS["road-realtime"],
    full_image_epochs=0,
    loop=replace(PRESETS["road-realtime"].loop, epochs=8, batch_size=6, learning_rate=5e-4),
)


def with_crops_of_size(config: SegTrainConfig, preset: SegTrainConfig) -> SegTrainConfig:
    """Scales the preset's crops to the configuration's size; does nothing if the configuration has its own crops."""
    own, first = config.augment, preset.augment
    if config.size == preset.size or (own.crop_height, own.crop_width) != (first.crop_height, first.crop_width):
        return config
    sides = (own.crop_height, own.crop_width)
    height, width = (max(1, round(side * config.size / preset.size / 32)) * 32 for side in sides)
    return replace(config, augment=replace(own, crop_height=height, crop_width=width))


def without_conflicts(config: SegTrainConfig, preset: SegTrainConfig) -> tuple[SegTrainConfig, tuple[str, ...]]:
    """Lowers settings of the preset that contradict settings that the user named, and says so in a remark."""
    most: dict[str, Any] = dict.fromkeys(("full_image_epochs", "unzoomed_epochs"), config.loop.epochs)
    low = {name: limit for name, limit in most.items() if getattr(config, name) == getattr(preset, name) > limit}
    told = ", ".join(f"{name} from {getattr(preset, name):g} to {limit:g}" for name, limit in low.items())
    return replace(config, **low), (f"lowered to fit your settings: {told}",) if low else ()
