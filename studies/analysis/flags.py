"""The flags of each study; no torch here, so that a bad flag is refused at once."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tyro.conf import Positional, arg

from steadyseg.core.errors import InputError
from steadyseg.core.options import Rare, spelled
from steadyseg.runtime.options import Settings


@dataclass(frozen=True)
class StudyOptions:
    """The flags that all studies have."""

    models: Positional[Annotated[tuple[str, ...], arg(metavar="MODEL")]]
    """Pretrained names or .safetensors files, of classifiers or of segmentation networks, or timm:NAME; they stand side
    by side in the tables."""
    data: Path
    """CIFAR or an ImageFolder for classifiers; a folder with SPLIT/ and SPLITannot/ for segmentation."""
    split: Literal["train", "val", "test", "trained", "held-out"] | None = None
    """Split of the data; trained and held-out are the parts of train that a classifier's training used and left out.
    auto: train where the loss of training is measured (hessian, landscape), else test."""
    images: int | None = None
    """Number of pictures, drawn with the seed; by default a study ends within 20 minutes on two cores."""
    settings: Settings = ()
    """Rarely needed settings, as NAME=VALUE; `--config list` prints them."""
    max_seconds: Rare[float] = 900.0
    """Begin no new part after so many seconds; what was measured until then is the report."""
    seed: Rare[int] = 0
    """Seed of the choice of pictures and of everything drawn."""
    timm_weights: Rare[Literal["pretrained", "random"]] = "pretrained"
    """Weights of timm:NAME: the library's (fetched once, needs a network connection), or random ones from the seed."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder for report.md and report.json; runs/STUDY/MODELS without it."""
    overwrite: bool = False
    """Replace a report that exists."""
    device: Rare[str] = "auto"
    """auto, cpu or cuda; auto: cuda where there is one."""

    def __post_init__(self) -> None:
        require_least("--images", self.images, 1)
        require_positive("max_seconds", self.max_seconds)


def require_least(flag: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise InputError(f"{flag} must be {least} or more, got {value}")


@dataclass(frozen=True)
class MapsJob:
    """The flags of a study of feature maps."""

    options: StudyOptions
    units: Rare[tuple[str, ...]] = ()
    """Only these parts of the network, by their dotted names; every block and smoothing layer without it."""


@dataclass(frozen=True)
class LossJob:
    """The flags of a study of the loss around the weights."""

    options: StudyOptions
    augmented: Rare[bool] = True
    """Pictures as a training sees them; false: as they are."""
    dropout: Rare[bool] = False
    """Keep the dropout on, with masks of the seed (published: with MC dropout, arXiv 2105.12639)."""


@dataclass(frozen=True)
class FourierJob(MapsJob):
    """The flags of the study `fourier`."""

    study: ClassVar[str] = "fourier"


@dataclass(frozen=True)
class VarianceJob(MapsJob):
    """The flags of the study `variance`."""

    study: ClassVar[str] = "variance"
    samples: Rare[int] = 10
    """Dropout draws of every picture, where the network has dropout; 1 draws none."""

    def __post_init__(self) -> None:
        require_least("--config samples", self.samples, 1)


@dataclass(frozen=True)
class HessianJob(LossJob):
    """The flags of the study `hessian`."""

    study: ClassVar[str] = "hessian"
    top: Rare[int] = 5
    """Eigenvalues of largest magnitude of each mini-batch (published: 1 and 5)."""
    batch_size: Rare[int | None] = None
    """Pictures of a mini-batch; 16 for classifiers (published: 128 and 16), 1 for segmentation networks without it."""
    steps: Rare[int] = 40
    """Lanczos steps for the density of all eigenvalues, each a vector as large as the weights in memory; 0: no
    density."""
    iterations: Rare[int] = 100
    """Maximum number of Lanczos restarts in the search for the top eigenpairs (a, v). The study fails if an eigenpair's
    residual |H v - a v| / |a| exceeds 0.001."""
    weight_decay: Rare[float | None] = None
    """Weight decay of the metrics with L2; by default the network's training decay."""

    def __post_init__(self) -> None:
        for name, least in (("top", 1), ("batch_size", 1), ("steps", 0), ("iterations", 2)):
            require_least(spelled(self, name), getattr(self, name), least)
        if self.weight_decay is not None and not 0.0 <= self.weight_decay < math.inf:
            raise InputError(f"weight_decay must be 0 or more, got {self.weight_decay:g}")


@dataclass(frozen=True)
class LandscapeJob(LossJob):
    """The flags of the study `landscape`."""

    study: ClassVar[str] = "landscape"
    rule: Rare[Literal["filter", "axis0"]] = "filter"
    """Rescaling of random directions: filter by filter (the paper's rule) or along axis 0 (the published code's)."""
    points: Rare[int] = 21
    """Points of the plane along each direction, an odd number."""
    reach: Rare[float] = 1.0
    """Extent of the plane; 1: the directions are as long as the filters (published: 0.1 and 1)."""

    def __post_init__(self) -> None:
        if self.points < 3 or self.points % 2 == 0:
            raise InputError(
                f"--config points must be odd, 3 or more, so that one is the trained weights, got {self.points}"
            )
        require_positive("reach", self.reach)


@dataclass(frozen=True)
class LesionJob:
    """The flags of the study `lesion`."""

    study: ClassVar[str] = "lesion"
    options: StudyOptions
    units: Rare[tuple[str, ...]] = ()
    """Only these parts of the network, by their dotted names. By default: every convolution larger than 1x1,
    attention block, MLP block, smoothing layer, and block that keeps its map's shape."""


@dataclass(frozen=True)
class SimilarityJob(MapsJob):
    """The flags of the study `similarity`."""

    study: ClassVar[str] = "similarity"


@dataclass(frozen=True)
class ReliabilityJob:
    """The flags of the study `reliability`."""

    study: ClassVar[str] = "reliability"
    options: StudyOptions
    samples: Rare[int] = 10
    """Dropout passes, where the network has dropout, beside one pass without; 1: that pass alone."""

    def __post_init__(self) -> None:
        require_least("--config samples", self.samples, 1)


def require_positive(flag: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{flag} must be more than 0, got {value:g}")


StudyJob = FourierJob | VarianceJob | HessianJob | LandscapeJob | LesionJob | SimilarityJob | ReliabilityJob
