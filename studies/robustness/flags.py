"""The flags of the study `robustness`; no torch here, so that a bad flag is refused at once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from tyro.conf import Positional, arg

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, SEVERITIES, TUNING_CORRUPTIONS, require_known
from steadyseg.core.errors import InputError
from steadyseg.core.options import Rare, spelled
from steadyseg.runtime.options import Settings

StudyName = Literal["corruptions", "stream", "perturbations", "attacks", "bands", "ood"]
STUDIES: tuple[StudyName, ...] = get_args(StudyName)

OOD_SAMPLES = 10
"""Dropout passes of a segmentation network in the study ood: disagreement needs several."""

STREAM_TYPES = ("gaussian_noise", "impulse_noise", "snow", "defocus_blur")
"""Default corruptions of the val stream: the first three are drawn anew in every frame, the blur is not."""
STREAM_SEVERITIES = (1, 3, 5)


@dataclass(frozen=True)
class RobustnessOptions:
    """Settings of all studies; an empty tuple and None leave a choice to the network and the data."""

    types: Rare[tuple[str, ...]] = ()
    """Corruptions by name; all 19 without it."""
    severities: Rare[tuple[int, ...]] = ()
    """All five, and of the stream 1, 3 and 5."""
    images: int | None = None
    """Pictures; 1,000 for a classifier, 30 for a segmentation network."""
    costly_images: Rare[int | None] = None
    """Pictures where each takes tens of passes (perturbations, attacks, bands); 50 and 3."""
    sample_counts: Rare[tuple[int, ...]] = ()
    """Numbers of dropout passes to measure besides one pass without dropout."""
    stream_frames: Rare[int] = 30
    """Frames of the val stream."""
    eps: Rare[tuple[float, ...]] = (2.0,)
    """Budgets of the attacks in levels of 255."""
    noise: Rare[tuple[float, ...]] = (0.02, 0.08)
    """Root mean squares of the noise of each band, of the pixel range. The larger equals ImageNet-C's
    gaussian_noise at severity 1; a network that has never seen noise fails at it in every band."""
    ood: tuple[str, ...] = ()
    """Videos and image folders of out-of-distribution pictures."""
    calibrated: Literal["auto", "on", "off"] = "auto"
    """Use the temperatures and prediction sets of a checkpoint (auto: for the methods that have them); on: refuse a
    checkpoint without any."""
    seed: Rare[int] = 0
    """Seed of the choice of pictures, of the noise and corruptions, and of the dropout masks."""

    def __post_init__(self) -> None:
        for name in self.types:
            require_known(name, (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS), "corruption")
        for severity in self.severities:
            if severity not in SEVERITIES:
                raise InputError(f"--config severities must be of 1, 2, 3, 4, 5, got {severity}")
        for name, least in (("images", 1), ("costly_images", 1), ("sample_counts", 1), ("stream_frames", 2)):
            given = getattr(self, name)
            for value in given if isinstance(given, tuple) else (given,):
                if value is not None and value < least:
                    raise InputError(f"{spelled(self, name)} must be {least} or more, got {value}")
        for name, largest in (("eps", 255), ("noise", 1)):
            if not getattr(self, name):
                raise InputError(f"{spelled(self, name)} needs one or more numbers")
            for value in getattr(self, name):
                if not 0.0 < value <= largest:
                    raise InputError(f"{spelled(self, name)} must lie in (0, {largest}], got {value:g}")
        for name in ("types", "severities", "sample_counts", "eps", "noise"):
            given = getattr(self, name)
            if len(set(given)) != len(given):
                raise InputError(f"{spelled(self, name)} names something twice: {' '.join(map(str, given))}")


@dataclass(frozen=True)
class RobustnessJob:
    """The flags of the study `robustness`."""

    models: Positional[Annotated[tuple[str, ...], arg(metavar="MODEL")]]
    """Pretrained names or .safetensors files, of classifiers or of segmentation networks; they see the same
    pictures."""
    data: Path
    """CIFAR or an ImageFolder for classifiers; a folder with SPLIT/ and SPLITannot/ for segmentation."""
    split: Literal["train", "val", "test", "held-out"] = "test"
    """Split of the data (held-out: the training images that a classifier's training held out); stream takes val."""
    only: tuple[StudyName, ...] = ()
    """Only these studies; all that the data allows without it."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Folder for report.md and report.json; runs/robustness/MODEL without it."""
    overwrite: bool = False
    """Replace a report that exists."""
    settings: Settings = ()
    """Rarely needed settings, as NAME=VALUE; `--config list` prints them."""
    options: RobustnessOptions = field(default_factory=RobustnessOptions)
    device: Rare[str] = "auto"
    """auto, cpu or cuda; auto: cuda where there is one."""


Watch = Callable[[list[Any], str], Iterable[Any]]
"""(items, title) -> the items one by one; it may show a progress bar."""


def no_progress(items: list[Any], title: str) -> Iterable[Any]:
    return items
