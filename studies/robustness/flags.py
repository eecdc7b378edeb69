"""What a robustness study is asked for: pictures, corruptions, budgets; no torch here, so that slips are said at
once."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from tyro.conf import OmitArgPrefixes, Positional

from core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, SEVERITIES, TUNING_CORRUPTIONS, require_known
from core.errors import InputError

T = TypeVar("T")

StudyName = Literal["corruptions", "stream", "perturbations", "attacks", "bands", "elsewhere"]
STUDIES: tuple[StudyName, ...] = ("corruptions", "stream", "perturbations", "attacks", "bands", "elsewhere")

ELSEWHERE_SAMPLES = 10
"""Dropout passes of a segmentation network where its disagreement is looked at; one pass has none."""

STREAM_TYPES = ("gaussian_noise", "impulse_noise", "snow", "defocus_blur")
"""Of the val stream if nothing else is asked for: the first three are drawn anew in every frame, the blur is not."""
STREAM_SEVERITIES = (1, 3, 5)


@dataclass(frozen=True)
class RobustnessOptions:
    """Settings of all studies; an empty tuple and None leave a choice to the network and the data."""

    types: tuple[str, ...] = ()
    """Corruptions by name; all 19, or those that the published folder has."""
    severities: tuple[int, ...] = ()
    """All five, and of the stream 1, 3 and 5."""
    images: int | None = None
    """Pictures; 1,000 for a classifier, 30 for a segmentation network."""
    costly_images: int | None = None
    """Pictures where each takes tens of passes (perturbations, attacks, bands); 50 and 3."""
    samples: tuple[int, ...] = ()
    """Numbers of dropout passes to measure besides one pass without dropout."""
    stream_frames: int = 30
    """Frames of the val stream."""
    eps: tuple[float, ...] = (2.0,)
    """Budgets of the attacks in levels of 255."""
    noise: tuple[float, ...] = (0.02, 0.08)
    """Root mean squares of the noise of each band, of the pixel range: the larger is that of ImageNet-C's
    gaussian_noise at severity 1, at which a network that has never seen noise fails in every band."""
    cifar_c: Path | None = None
    """Folder with the files of CIFAR-10-C or CIFAR-100-C."""
    cifar_p: Path | None = None
    """Folder with the files of CIFAR-10-P."""
    elsewhere: tuple[str, ...] = ()
    """Videos and image folders that show something else than the data."""
    calibrated: Literal["auto", "off"] = "auto"
    """Whether to use a checkpoint's temperatures and prediction sets; auto: with the methods that it has them for."""
    seed: int = 0
    """Of the choice of pictures, of everything drawn for them, and of the dropout masks."""

    def __post_init__(self) -> None:
        for name in self.types:
            require_known(name, (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS), "corruption")
        for severity in self.severities:
            if severity not in SEVERITIES:
                raise InputError(f"--severities must be of 1, 2, 3, 4, 5, got {severity}")
        for flag, values, least in (
            ("images", (self.images,), 1),
            ("costly-images", (self.costly_images,), 1),
            ("samples", self.samples, 1),
            ("stream-frames", (self.stream_frames,), 2),
        ):
            for value in values:
                if value is not None and value < least:
                    raise InputError(f"--{flag} must be {least} or more, got {value}")
        for flag, budgets in (("eps", self.eps), ("noise", self.noise)):
            if not budgets:
                raise InputError(f"--{flag} needs one or more numbers")
        for flag, shares in (("eps", tuple(eps / 255 for eps in self.eps)), ("noise", self.noise)):
            for share in shares:
                if not 0.0 < share <= 1.0 or not math.isfinite(share):
                    whole = ("(0, 255]", 255 * share) if flag == "eps" else ("(0, 1]", share)
                    raise InputError(f"--{flag} must lie in {whole[0]}, got {whole[1]:g}")
        for flag, given in (
            ("types", self.types),
            ("severities", self.severities),
            ("samples", self.samples),
            ("eps", self.eps),
            ("noise", self.noise),
        ):
            if len(set(given)) != len(given):
                raise InputError(f"--{flag} names something twice: {' '.join(map(str, given))}")


@dataclass(frozen=True)
class RobustnessJob:
    """The flags of `steadyseg analyze robustness`."""

    models: Positional[tuple[str, ...]]
    """Pretrained names or .safetensors files, of classifiers or of segmentation networks; they see the same
    pictures."""
    data: Path
    """CIFAR or an ImageFolder for classifiers; a folder with SPLIT/ and SPLITannot/ for segmentation."""
    split: Literal["train", "val", "test", "held-out"] = "test"
    """Which split (held-out: of a classifier's training pictures); the study stream takes val."""
    studies: tuple[StudyName, ...] = ()
    """Only these; all that the data allows without it."""
    options: OmitArgPrefixes[RobustnessOptions] = field(default_factory=RobustnessOptions)
    out: Path | None = None
    """Folder for report.md, report.json and the plots; runs/robustness/MODEL without it."""
    plots: bool = True
    """Whether to draw them, which needs matplotlib."""
    device: str = "auto"
    """auto, cpu or cuda."""


class Watch(Protocol):
    """Hands on the items one by one and may show how far it is."""

    def __call__(self, items: list[T], title: str) -> Iterable[T]: ...


def no_progress(items: list[T], title: str) -> Iterable[T]:
    """Nothing is shown."""
    return items
