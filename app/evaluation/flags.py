"""The flags of `steadyseg evaluate` and `steadyseg calibrate`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg

from core.method import MethodOptions

SplitName = Literal["train", "val", "test", "held-back"]


@dataclass(frozen=True)
class EvaluateJob:
    """What is measured on what."""

    model: Positional[str]
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export` (segmentation: --stateful). An image
    classifier is measured by ensemble size, in one pass: dropout off, and after 1, 2, ... dropout passes or members;
    flags about frames are not for it."""
    data: Path
    """Folder with SPLIT/ and SPLITannot/, or `street`; for a classifier CIFAR's folder or SPLIT/CLASS/*.jpg."""
    split: SplitName = "test"
    """Which split; held-back: the training pictures that a classifier's training held back."""
    protocol: Literal["stills", "stream", "moving-stills"] = "stills"
    """stills: every image alone; stream: the images in order as one 15 Hz video, with consistency; moving-stills: a
    virtual camera drives up to every image, the last two of 7 frames are measured."""
    method: OmitArgPrefixes[MethodOptions] = field(default_factory=MethodOptions)
    members: tuple[str, ...] = ()
    """Further checkpoints: a deep ensemble. dnn averages all its members, vq-dnn draws one for every frame."""
    seed: int = 0
    """Seed of the dropout masks; a classifier's depend on it and a picture's place, so they repeat on one device."""
    frames: Path | None = None
    """Text file of base names: measure only these images."""
    json: Path | None = None
    """File for the result."""
    plot: Path | None = None
    """Picture (.png, .svg, .pdf) for the reliability diagram, and a classifier's NLL by ensemble size."""
    executor: Literal["auto", "torch", "openvino", "onnxruntime"] = "auto"
    """What computes; auto is torch for checkpoints, which alone draws the masks of --seed."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "fp32"
    """auto takes bf16 where the processor computes in it, else int8 where the checkpoint shows that it loses little."""
    device: str = "auto"
    """auto, cpu or cuda."""


@dataclass(frozen=True)
class CalibrateJob:
    """What is fitted on what."""

    model: Positional[str]
    """Pretrained name or .safetensors file."""
    data: Path
    """Folder with SPLIT/ and SPLITannot/, or `street`; for a classifier CIFAR's folder or SPLIT/CLASS/*.jpg. Never the
    data that is reported afterwards."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """The calibrated checkpoint; it keeps what is fitted for other methods."""
    split: SplitName = "val"
    """Which split. held-back: what a classifier's training held back (train classification --hold-back 0.1): what to
    fit on where there is no val split, as in CIFAR."""
    protocol: Literal["auto", "stills", "stream", "moving-stills"] = "auto"
    """As in `evaluate`; auto: the stream, so that the temporal mean is on while it is fitted."""
    method: OmitArgPrefixes[MethodOptions] = field(default_factory=MethodOptions)
    coverage: float = 0.9
    """Share of the pixels (or images) whose prediction set shall hold the true class."""
    risk_class: str | None = None
    """Class whose misses are bounded, by name."""
    risk: float = 0.05
    """The bound: largest mean share of that class's pixels that may be missed."""
    seed: int = 0
    """Seed of the dropout masks."""
    frames: Path | None = None
    """Text file of base names: use only these images."""
    overwrite: bool = False
    """Replace the output."""
    device: str = "auto"
    """auto, cpu or cuda."""
    own_world: bool = False
    """Also fit what the network knows of its own world on the train images: novelty, regions and a temperature that
    follows the frame, in every mode of one pass and in this one; of a classifier in mode dnn, by picture."""
    stages: tuple[str, ...] = ()
    """Stages of the network for --own-world; regions are of the last one. Those of docs/novelty.md without it."""
    int8: bool = False
    """Also fit what the network needs in int8, on the train images, and measure what it loses on these frames: where a
    processor has no bf16, `--precision auto` takes int8 if that is at most 0.5 points of accuracy and 0.2 of ECE. For
    segmentation networks, mode dnn or vq-dnn."""
    logit_adjustment: bool = False
    """Subtract the logarithms of the training loss's class weights from the logits before anything is fitted: likelier
    probabilities and more pixels right, but rare classes are found less often."""
