"""The robustness runs: networks that are compared, once in full and twice more for the spread, and the default
network."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from steadyseg.core.model.checkpoint import read_meta
from steadyseg.studies.harness.networks import digest_of, file_of, trained_network
from steadyseg.studies.robustness.flags import RobustnessOptions, StudyName

SEEDS = (0, 1, 2)
"""Seeds of the choice of pictures, of all noise and of the dropout masks. Seed 0 has everything, the others what is
repeated."""
REPEATED_SEVERITY = 3
CALIBRATED = "classifiers-calibrated"
PROTOCOL = 1
"""Raised whenever a study measures something else: then all are run again."""


@dataclass(frozen=True)
class Group:
    """Networks that see the same pictures."""

    name: str
    about: str
    models: tuple[str, ...]
    data: str
    """Name of its folder beside the others: camvid or cifar10."""
    repeated: tuple[StudyName, ...]
    """Studies that the other seeds have too; none where the networks differ in more than one thing."""
    calibrated: Literal["auto", "on", "off"]

    def run_name(self, seed: int) -> str:
        """Folder of the run with this seed."""
        return f"{self.name}-seed{seed}" if seed else self.name


GROUPS = (
    Group(
        "classifiers",
        "the pretrained classifiers of CIFAR-10, temperature 1",
        ("cifar10-resnet18-plain", "cifar10-resnet18-mc-smooth"),
        "cifar10",
        ("corruptions", "attacks", "bands"),
        "off",
    ),
    Group(
        "segmentation",
        "two networks of the published CamVid recipe that differ in spatial smoothing alone, temperature 1",
        (trained_network("paper-plain-0"), trained_network("paper-smooth-0")),
        "camvid",
        ("corruptions", "stream", "attacks"),
        "off",
    ),
    Group("camvid-unet-s", "camvid-unet-s as it ships, calibrated", ("camvid-unet-s",), "camvid", (), "auto"),
)


@dataclass(frozen=True)
class Run:
    """One call of `steadyseg analyze robustness`."""

    name: str
    group: Group
    studies: tuple[StudyName, ...]
    options: RobustnessOptions

    @property
    def models(self) -> tuple[str, ...]:
        return self.group.models

    @property
    def data(self) -> str:
        return self.group.data

    def digest(self, data: str) -> str:
        """Changes with the weights, the data, the settings and what a study measures; a video counts by its name.

        Fits that were added to a file's header later count only where the run uses them.
        """
        usual = asdict(RobustnessOptions())
        options = {name: value for name, value in asdict(self.options).items() if value != usual[name]}
        options["ood"] = [Path(video).name for video in self.options.ood]
        settings = json.dumps([PROTOCOL, self.studies, options, data], sort_keys=True)
        total = hashlib.sha256(settings.encode())
        for model in self.models:
            total.update(digest_of(model).encode())
            if self.options.calibrated == "auto":
                total.update(json.dumps(read_meta(file_of(model)).calibration, sort_keys=True).encode())
        return total.hexdigest()[:12]


def all_runs(videos: tuple[str, ...]) -> list[Run]:
    """All runs; `videos` are the out-of-distribution pictures of CamVid's networks."""
    runs = []
    for group in GROUPS:
        ood = videos if group.data == "camvid" else ()
        whole = RobustnessOptions(ood=ood, calibrated=group.calibrated)
        runs.append(Run(group.run_name(0), group, (), whole))
        for seed in SEEDS[1:] if group.repeated else ():
            again = RobustnessOptions(severities=(REPEATED_SEVERITY,), calibrated=group.calibrated, seed=seed)
            runs.append(Run(group.run_name(seed), group, group.repeated, again))
    calibrated = RobustnessOptions(severities=(REPEATED_SEVERITY,))
    return [*runs, Run(CALIBRATED, GROUPS[0], ("corruptions",), calibrated)]
