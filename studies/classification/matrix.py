"""The trainings that are compared: ResNet-18 and VGG-16 on 5,000 pictures of CIFAR-10, with and without dropout,
smoothing."""

from dataclasses import dataclass
from pathlib import Path

RUNS = Path("runs/classification")
RECIPES = {
    "resnet18": "--network resnet18 --channels 32",
    "vgg16": "--network vgg16 --channels 32 --config head=gap",
}
"""Half the published width; VGG with the GAP head, whose MLP would hold most of the weights."""


@dataclass(frozen=True)
class Classifier:
    """One training. All of a model and seed differ in nothing but dropout and smoothing."""

    model: str
    dropout: bool
    smoothing: bool
    seed: int = 0

    @property
    def kind(self) -> str:
        """plain, smooth, mc or mc-smooth."""
        return "-".join([*["mc"] * self.dropout, *["smooth"] * self.smoothing]) or "plain"

    @property
    def name(self) -> str:
        return f"{self.model}-{self.kind}-{self.seed}"

    @property
    def file(self) -> Path:
        return RUNS / self.name / "model.safetensors"

    @property
    def command(self) -> str:
        """The command that trains it."""
        rate = 0.3 if self.dropout else 0
        smoothing = "--smoothing" if self.smoothing else "--no-smoothing"
        return (
            f"steadyseg train classification {RECIPES[self.model]} --data cifar10 --dropout {rate} {smoothing} --seed "
            f"{self.seed} --run {RUNS / self.name}"
        )


FACTORS = ((False, False), (False, True), (True, False), (True, True))
"""(dropout, smoothing)"""
RESNETS = [Classifier("resnet18", *factors, seed) for seed in (0, 1) for factors in FACTORS]
VGGS = [Classifier("vgg16", *factors) for factors in (FACTORS[0], FACTORS[3])]
EVERY = [*RESNETS, *VGGS]


def subjects() -> dict[str, list[Classifier]]:
    """Each network alone, and the two seeds of a kind as a deep ensemble."""
    found = {one.name: [one] for one in EVERY}
    for factors in FACTORS:
        pair = [Classifier("resnet18", *factors, seed) for seed in (0, 1)]
        found[f"resnet18-{pair[0].kind}-ensemble"] = pair
    return found
