"""The flags of `steadyseg evaluate` and `steadyseg calibrate`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from steadyseg.core.method import MethodOptions, PassOptions
from steadyseg.core.options import Rare
from steadyseg.runtime.options import ComputeOptions, Settings

SplitName = Literal["train", "val", "test", "held-out"]


@dataclass(frozen=True)
class EvaluateJob:
    """A network, labelled data to measure it on, and the files to write."""

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg export` (segmentation: --stateful). A classifier
    is measured in one pass, with dropout off and after 1, 2, ... forward passes or members. Flags about frames do not
    apply to a classifier."""
    data: Path
    """Folder with SPLIT/ and SPLITannot/, or `street`; for a classifier CIFAR's folder or SPLIT/CLASS/*.jpg."""
    split: SplitName | None = None
    """Split of the data. `held-out`: the images of train that the training held out, by the network's record. `auto`:
    test, else val, else held-out."""
    protocol: Literal["stills", "stream", "moving-stills"] = "stills"
    """`stills`: every image alone. `stream`: the images in order as one 15 Hz video, with consistency. `moving-stills`:
    a virtual camera drives up to every image, and the last two of 7 frames are measured."""
    only: Path | None = None
    """Text file of base names: measure only these images."""
    sequence: Path | None = None
    """Folder with all frames of the videos (--protocol stream). Every frame is segmented in order; frames whose names
    have a label in the split are measured."""
    by: Literal["recording"] | None = None
    """Also measure the images of each recording (name without number), with 95 % intervals over blocks of ten
    neighbours."""
    every: Annotated[int | Literal["auto"], arg(metavar="N|auto")] = 1
    """The frames of a stream that the network runs on, as in `video --every`; the others get its maps, warped."""
    members: tuple[str, ...] = ()
    """Further checkpoints: a deep ensemble. dnn averages all members, vq-dnn draws one member for every frame."""
    report: Path | None = None
    """JSON file for the metrics."""
    overwrite: bool = False
    """Replace files that exist."""
    seed: int = 0
    """Seed of the dropout masks; a picture's masks depend on the seed and on the picture's place."""
    cutoff: Rare[float] = 0.9
    """Confidence above which a pixel is certain, for the metrics named after it: 0.7 gives acc_70, unc_70, freq_70."""
    size: Rare[int | None] = None
    """Height in pixels of the network's input, as in `video --size`; by default the checkpoint's height."""
    settings: Settings = ()
    """cutoff=0.7, size=480, or a .toml file of these; `--config list` prints all."""
    method: MethodOptions = field(default_factory=MethodOptions)
    compute: ComputeOptions = field(default_factory=ComputeOptions)
    """Backend auto is PyTorch and precision auto is fp32 here, so that metrics repeat."""


@dataclass(frozen=True)
class CalibrateJob:
    """A network, labelled data to fit it on, and the kinds of calibration to fit."""

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """Pretrained name, .safetensors file, or .onnx file of `steadyseg wrap` or of `steadyseg export --stateful`."""
    data: Path
    """Folder with SPLIT/ and SPLITannot/, or `street`; for a classifier CIFAR's folder or SPLIT/CLASS/*.jpg. Never use
    the data of a later report."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """The calibrated checkpoint or .onnx file; a checkpoint keeps the calibrations of other methods."""
    split: SplitName = "val"
    """Split of the data. `held-out`: the images of train that the training held out, so that val and test remain for
    reporting (train seg --hold-out, train classification --hold-out 0.1)."""
    protocol: Literal["auto", "stills", "stream", "moving-stills"] = "auto"
    """Protocol as in `evaluate`; auto: moving stills of a folder's images, and the stream of the street, so that the
    temporal mean is on during the fit."""
    familiarity: bool = False
    """Also fit familiarity on the train images: how unusual a frame is, its energy scale, and its expected accuracy. A
    classifier's familiarity is fitted in mode dnn, without an expected accuracy."""
    also: tuple[Path, ...] = ()
    """More data folders that the network was trained on, with train and val, for --familiarity; labels may be
    coarse."""
    foreign: Path | None = None
    """Folder of pictures that the network is not for, such as photographs. Every second picture teaches --familiarity
    an expected accuracy of 0."""
    int8: bool = False
    """Also fit the ranges for int8 on the train images, and measure the loss of int8 on these frames. If it is at most
    0.5 points of accuracy and 0.2 of ECE, `--precision auto` uses int8 on processors without bf16 or with slower bf16.
    For segmentation networks, mode dnn or vq-dnn."""
    logit_adjustment: bool = False
    """Before all fits, subtract the logarithms of the training loss's class weights from the logits. NLL and accuracy
    improve, but rare classes are found less often."""
    coverage: float = 0.9
    """Share of the pixels (or images) whose prediction set shall hold the true class."""
    risk_class: str | None = None
    """Name of the class whose misses are bounded."""
    risk: float = 0.05
    """The bound: the mean share of this class's missed pixels is at most this."""
    overwrite: bool = False
    """Replace an output that exists."""
    device: str = "auto"
    """auto, cpu or cuda; auto: cuda if there is a GPU."""
    method: PassOptions = field(default_factory=PassOptions)
