"""The ablation's table: trainings that differ from the first in one thing, all at small size, none on val or test."""

import re
from dataclasses import dataclass
from pathlib import Path

from steadyseg.core.corruptions.corruptions import TUNING_CORRUPTIONS
from steadyseg.core.training.run_folder import MODEL_NAME

BASE = tuple(
    "--size 180 --channels 16 --config crop_height=144 crop_width=192 precision=bf16 evaluate_every=20".split()
)
"""Half the size of the networks that ship; everything else is the preset `cpu`. Memory is channels last in every
training."""
MODEL = re.compile(r"{(.+?)}")
"""The model of another training in a flag: {name}."""
EPOCHS = 40


@dataclass(frozen=True)
class Recipe:
    """One line of the table: what it changes, and the flags that do so; {name} stands for the model of another
    training."""

    name: str
    words: str
    flags: tuple[str, ...] = ()
    epochs: int = EPOCHS
    data: str = "camvid"
    """The folder of that name, or `street`."""
    seeds: tuple[int, ...] = (0,)
    seen: tuple[str, ...] = ()
    """Corruptions that it trains on: on these it meets no unseen shift."""


@dataclass(frozen=True)
class Row:
    """One training: a recipe and a seed."""

    recipe: Recipe
    seed: int

    @property
    def name(self) -> str:
        return f"{self.recipe.name}-{self.seed}"

    def needs(self) -> list[str]:
        """The trainings whose models its flags name."""
        return [name for flag in self.recipe.flags for name in MODEL.findall(flag)]

    def folder(self, runs: Path) -> Path:
        return runs / self.name

    def flags(self, camvid: Path, runs: Path) -> list[str]:
        """Flags after `steadyseg train seg`."""
        data = "street" if self.recipe.data == "street" else str(camvid)
        given = [MODEL.sub(lambda found: str(runs / found[1] / MODEL_NAME), flag) for flag in self.recipe.flags]
        return [
            "--data",
            data,
            *BASE,
            "--epochs",
            str(self.recipe.epochs),
            "--seed",
            str(self.seed),
            *given,
            "--run",
            str(self.folder(runs)),
        ]


STREET_EPOCHS = 10
"""Epochs on 1,200 street pictures: as many steps as 40 epochs of CamVid's 295."""

RECIPES = (
    Recipe("base", "the preset `cpu` at half size", seeds=(0, 1)),
    Recipe("textures", "textures mixed into half of the pictures", ("--config", "textures=0.5")),
    Recipe(
        "corrupt",
        "noise and blur on half of the pictures",
        ("--config", "corrupt=0.5", "corruptions=speckle_noise,gaussian_blur"),
        seen=("speckle_noise", "gaussian_blur"),
    ),
    Recipe("auxiliary", "auxiliary heads on the coarser decoder stages", ("--config", "auxiliary=0.4"), seeds=(0, 1)),
    Recipe("rare-crops", "half of the crops around a rare class", ("--config", "rare_crop=0.5")),
    Recipe("paste", "rare things of another picture pasted into half of the pictures", ("--config", "paste=0.5")),
    Recipe(
        "relu6",
        "spatial smoothing with ReLU6 instead of tanh, which int8 computes without floats",
        ("--config", "prob=relu6"),
    ),
    Recipe(
        "chosen",
        "auxiliary heads, ReLU6, and four corruptions on 15 % of the pictures: what the networks that ship take",
        ("--config", "auxiliary=0.4", "prob=relu6", "corrupt=0.15", f"corruptions={','.join(TUNING_CORRUPTIONS)}"),
        seeds=(0, 1),
        seen=TUNING_CORRUPTIONS,
    ),
    Recipe("street", "(the procedural street, to begin with)", epochs=STREET_EPOCHS, data="street"),
    Recipe("from-street", "begins with the weights of 10 epochs of the procedural street", ("--init", "{street-0}")),
    Recipe("long", "three times as many epochs", epochs=3 * EPOCHS),
    Recipe("taught", "taught by the mean of both base networks", ("--config", "teacher={base-0},{base-1}")),
    Recipe("decay", "weight decay 0.01 instead of 0.0001", ("--config", "weight_decay=0.01")),
    Recipe("zoom", "zoom 0.75 to 2 instead of 0.6 to 1.5", ("--config", "scale_min=0.75", "scale_max=2")),
    Recipe("consistent", "temporal consistency loss with weight 0.1", ("--config", "consistency=0.1")),
)
"""In the order in which they are trained."""


def all_rows(recipes: tuple[Recipe, ...] = RECIPES) -> list[Row]:
    """First seeds first, so that the table stands before the second seeds do; what a row needs comes before it."""
    rows: list[Row] = []
    pending = sorted((Row(r, seed) for r in recipes for seed in r.seeds), key=lambda row: row.seed)
    while pending:
        ready = [row for row in pending if set(row.needs()) <= {done.name for done in rows}]
        assert ready, f"{pending[0].name} needs a training that is not in the table"
        rows.append(ready[0])
        pending.remove(ready[0])
    return rows
