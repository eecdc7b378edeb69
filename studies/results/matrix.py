"""The networks that are compared: their factors, and the command that trains each."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.studies.harness.networks import PROJECT, measured_networks, trained_network
from steadyseg.studies.harness.study import digest_of_file, digest_of_weights
from steadyseg.studies.harness.trainings import Job

RECIPES = {
    "paper": "--preset replica --channels 16 --epochs 40 --config step_epochs=31",
    "cpu": "--preset cpu --epochs 40",
}
"""paper: the published training at a quarter of its width, 130 epochs and the fall of the rate at 100 scaled to 40 and
31."""
RATES = {"paper": 0.5, "cpu": 0.2}


@dataclass(frozen=True)
class Network:
    """One training. All of a recipe and seed differ in nothing but dropout and spatial smoothing."""

    recipe: str
    dropout: bool
    smoothing: bool
    seed: int = 0
    clean: bool = False
    """Trained without the stills nearest in time to the val stream."""
    precision: ClassVar[str] = "bf16"
    """Number format of its training, in which it is measured; NLL: 0.2 to 0.9 % higher than in fp32."""

    @property
    def name(self) -> str:
        factors = "-".join([*["mc"] * self.dropout, *["smooth"] * self.smoothing]) or "plain"
        return f"{self.recipe}-{factors}-{self.seed}" + "-clean" * self.clean

    @property
    def file(self) -> Path:
        return PROJECT / trained_network(self.name)

    @property
    def command(self) -> str:
        """The command that trains it."""
        rate = RATES[self.recipe] if self.dropout else 0
        smoothing = "--smoothing" if self.smoothing else "--no-smoothing"
        apart = " --config exclude=studies/results/nearest_to_val.txt" if self.clean else ""
        return (
            f"steadyseg train seg --data CamVid {RECIPES[self.recipe]} --seed {self.seed} --dropout {rate} "
            f"{smoothing}{apart} --run runs/{self.name}"
        )

    @property
    def training(self) -> Job:
        """The row of the queue: the command without its run."""
        kind, _, _, *flags = shlex.split(self.command)[2:-2]
        return Job(self.name, (kind, "--data", "{data}", *flags))

    def digest(self) -> str:
        """The digest of the file; where there is none, of the file that was measured."""
        return digest_of_file(self.file) if self.file.exists() else str(measured_networks()[self.name]["digest"])


@dataclass(frozen=True)
class Pretrained:
    """A network that ships."""

    name: str
    dropout: bool = True
    precision: ClassVar[str] = "fp32"
    """Number format of its card."""

    @property
    def file(self) -> Path:
        return find_checkpoint(self.name)

    @property
    def command(self) -> str:
        """The command that trains it."""
        return str(read_meta(self.file).training["command"])

    def digest(self) -> str:
        """Digest of the weights alone: fits that were added to the file's header later are not used here."""
        return digest_of_weights(self.file)


FACTORS = ((False, False), (False, True), (True, False), (True, True))
"""(dropout, smoothing)"""
COMPARED = [Network(recipe, *factors) for recipe in RECIPES for factors in FACTORS]
"""The four networks of each recipe, seed 0."""
MEMBERS = [Network("paper", False, False, seed) for seed in (0, 1, 2)]
"""The deep ensemble: three plain trainings."""
CONTROL = Network("paper", True, True, clean=True)
NETWORKS = {network.name: network for network in [*COMPARED, *MEMBERS, CONTROL]}
"""All that are trained for the comparison."""
PRETRAINED = [Pretrained("camvid-unet-s"), Pretrained("camvid-realtime"), Pretrained("camvid-mobile")]
"""The included networks. The default rule was chosen with an earlier `camvid-unet-s`."""


def rule_job(network: Network | Pretrained) -> str:
    """The job that measures how the predictions of a network change along the stream, and the default rule on stills
    that its choice did not use."""
    return f"{network.name} default rule"
