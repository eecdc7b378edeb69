"""The flags of `steadyseg train`: the run, and the configuration that the checkpoint records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import OmitArgPrefixes

from classification.options import CLASS_PRESETS, ClassTrainConfig
from seg.options import SegTrainConfig
from seg.presets import PRESETS


@dataclass(frozen=True)
class SegTrainJob:
    """A segmentation training."""

    config: OmitArgPrefixes[SegTrainConfig] = PRESETS["cpu"]
    """Data, network and loss. The checkpoint records these settings and all that follow."""
    preset: Literal[
        "cpu", "unet-s", "realtime", "mobile", "paper", "unet-s-street", "realtime-street", "mobile-street"
    ] = "cpu"
    """cpu: U-Net for two cores; unet-s: the same network with a longer training; realtime: a small network that keeps
    up with a camera on two cores; mobile: a smaller one for browsers and boards; these three begin with (--init) the
    model of the preset of the same name with -street, which trains on the procedural street; paper: the published
    CamVid training. Other flags override it."""
    run: Path = Path("runs/seg")
    """Folder that the run writes: state, logs and the final checkpoint."""
    resume: bool = False
    """Go on after the last whole epoch in --run; needs the flags it began with."""
    device: str = "auto"
    """auto, cpu or cuda. With several processes (torchrun --nproc_per_node 2 -- .venv/bin/steadyseg train ...) each
    takes a GPU."""


@dataclass(frozen=True)
class ClassTrainJob:
    """A classifier's training."""

    config: OmitArgPrefixes[ClassTrainConfig] = CLASS_PRESETS["small"]
    """Data, network and loss. The checkpoint records these settings and all that follow."""
    preset: Literal["small", "sgd", "sgd-imagenet", "adamw", "adamw-imagenet"] = "small"
    """small: some thousand images on two cores; sgd, sgd-imagenet: the published trainings of CNNs; adamw,
    adamw-imagenet: those of vision transformers. Other flags override it."""
    run: Path = Path("runs/classification")
    """Folder that the run writes: state, logs and the final checkpoint."""
    resume: bool = False
    """Go on after the last whole epoch in --run; needs the flags it began with."""
    device: str = "auto"
    """auto, cpu or cuda. With several processes (torchrun --nproc_per_node 2 -- .venv/bin/steadyseg train ...) each
    takes a GPU."""
