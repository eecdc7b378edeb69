"""The studies that docs/studies/analysis shows: their networks and their flags."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steadyseg.app.cli import read_flags
from steadyseg.app.commands import ANALYSES
from steadyseg.studies.harness.networks import digest_of, trained_network


@dataclass(frozen=True)
class Pair:
    """Two networks side by side, plain first."""

    name: str
    about: str
    models: tuple[str, str]
    data: str
    """Folder of the data."""


CLASSIFIERS = Pair(
    "classifiers",
    "The included ResNet-18 (width 24), CIFAR-10: plain against smoothing **and** MC dropout together, one training "
    "each",
    ("cifar10-resnet18-plain", "cifar10-resnet18-mc-smooth"),
    "cifar10",
)
SEGMENTATION = Pair(
    "segmentation",
    "The papers' U-Net (width 16), CamVid: without smoothing and with it, one training each, no dropout",
    (trained_network("paper-plain-0"), trained_network("paper-smooth-0")),
    "camvid",
)
PAIRS = (CLASSIFIERS, SEGMENTATION)

FLAGS: dict[str, dict[str, str]] = {
    "fourier": {"classifiers": "--images 256", "segmentation": "--images 8"},
    "variance": {"classifiers": "--images 128", "segmentation": "--images 8"},
    "similarity": {"classifiers": "--images 256", "segmentation": "--images 8"},
    "reliability": {"classifiers": "", "segmentation": "--images 20"},
    "lesion": {"classifiers": "--images 300", "segmentation": "--images 4"},
    "hessian": {
        "classifiers": "--images 96 --config top=3 steps=24",
        "segmentation": "--images 3 --config top=2 steps=12",
    },
    "landscape": {"classifiers": "--images 128 --config points=11", "segmentation": "--images 1 --config points=9"},
}
"""Flags by study and pair; any other flag has the command's default."""


@dataclass(frozen=True)
class Run:
    """One study of one pair."""

    study: str
    pair: Pair

    @property
    def name(self) -> str:
        return f"{self.pair.name}/{self.study}"

    @property
    def models(self) -> tuple[str, str]:
        return self.pair.models

    @property
    def data(self) -> str:
        return self.pair.data

    def words(self, models: Sequence[str], data: str) -> list[str]:
        """The words after `steadyseg analyze STUDY`."""
        return [*models, "--data", data, *FLAGS[self.study][self.pair.name].split()]

    def job(self, models: Sequence[str], data: str) -> Any:
        """The flags as the command has them."""
        return read_flags(f"steadyseg analyze {self.study}", ANALYSES[self.study], self.words(models, data))

    def digest(self, data: str) -> str:
        """Changes with the weights, the data and the flags."""
        parts = [*map(digest_of, self.models), data, *self.words((), self.data)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def all_runs() -> list[Run]:
    return [Run(study, pair) for pair in PAIRS for study in FLAGS]
