"""The tables of docs/studies/training, from its record."""

from statistics import mean
from typing import Any

from steadyseg.core.corruptions.corruptions import TUNING_CORRUPTIONS
from steadyseg.core.errors import InputError
from steadyseg.studies.harness.tables import Tables, bind, read_record, spread, table
from steadyseg.studies.training.measure import RARE
from steadyseg.studies.training.recipes import RECIPES, Recipe, all_rows

KEYS = {"accuracy": (100, 1), "miou": (100, 1), "nll": (1, 3), "ece": (100, 1), "consistency": (100, 1)}
"""Figures: what they are multiplied by, and the decimals shown."""


def tables() -> Tables:
    """The tables by their names in the page."""
    record = read_record("training")
    refuse_mixed(record)
    makers = {
        "plain": plain_table,
        "effects": effects_table,
        "rare": rare_table,
        "corruption": corruption_table,
        "where_from": where_from,
    }
    return bind(record, makers)


def refuse_mixed(record: dict[str, Any]) -> None:
    """Raises InputError where rows were measured on different pictures: their differences would mean nothing."""
    slices = {found["digest"].rpartition("-")[2]: name for name, found in record.items()}
    if len(slices) > 1:
        one, other = sorted(slices.values())[:2]
        raise InputError(f"{one} and {other} were measured on different pictures; train all rows of the table again")


def values_of(record: dict[str, Any], recipe: Recipe, *path: str) -> list[float]:
    """One value for each seed that was trained."""
    values = []
    for seed in recipe.seeds:
        found = record.get(f"{recipe.name}-{seed}")
        if found and path[0] in found["rows"]:
            value = found["rows"]
            for key in path:
                value = value[key]
            values.append(float(value))
    return values


def measured(record: dict[str, Any]) -> list[Recipe]:
    """The measured recipes, except the network of the street alone, which was not trained on CamVid."""
    return [r for r in RECIPES if r.data != "street" and values_of(record, r, "accuracy")]


def plain_table(record: dict[str, Any]) -> str:
    columns = {"accuracy": "accuracy", "miou": "mIoU", "nll": "NLL", "ece": "ECE", "consistency": "consistency"}
    if not any("consistency" in found["rows"] for found in record.values()):  # rows of an older study have none
        del columns["consistency"]
    header = ["recipe", "what it changes", "epochs", "seeds", "hours", *columns.values()]
    lines = []
    for recipe in measured(record):
        hours = values_of(record, recipe, "hours")
        cells = [spread(values_of(record, recipe, key), *KEYS[key]) for key in columns]
        lines.append(
            [
                f"`{recipe.name}`",
                recipe.words,
                str(recipe.epochs),
                str(len(hours)),
                f"{sum(hours) / len(hours):.1f}",
                *cells,
            ]
        )
    return table(header, lines)


def effects_table(record: dict[str, Any]) -> str:
    """Change of each recipe's mean over its seeds against `base`: points, and NLL."""
    base, *others = measured(record)
    columns = {
        "mIoU": ("miou",),
        "accuracy": ("accuracy",),
        "NLL": ("nll",),
        **{name: ("iou", name) for name in RARE},
        **{name: ("corrupted", name) for name in TUNING_CORRUPTIONS},
    }

    def change(recipe: Recipe, path: tuple[str, ...]) -> str:
        scale, digits = (1, 3) if path == ("nll",) else (100, 1)
        after, before = (mean(values_of(record, one, *path)) for one in (recipe, base))
        return f"{scale * (after - before):+.{digits}f}"

    lines = ([f"`{recipe.name}`", *(change(recipe, path) for path in columns.values())] for recipe in others)
    return table(["against `base`", *columns], lines)


def rare_table(record: dict[str, Any]) -> str:
    lines = [
        [f"`{recipe.name}`", *(spread(values_of(record, recipe, "iou", name), 100, 1) for name in RARE)]
        for recipe in measured(record)
    ]
    return table(["recipe", *RARE], lines)


def corruption_table(record: dict[str, Any]) -> str:
    lines = []
    for recipe in measured(record):
        cells = [spread(values_of(record, recipe, "corrupted", name), 100, 1) for name in TUNING_CORRUPTIONS]
        seen = [
            f"({cell})" if name in recipe.seen else cell for name, cell in zip(TUNING_CORRUPTIONS, cells, strict=True)
        ]
        lines.append([f"`{recipe.name}`", *seen])
    return table(["recipe", *TUNING_CORRUPTIONS], lines)


def where_from(record: dict[str, Any]) -> str:
    lines = []
    for row in all_rows():
        if found := record.get(row.name):
            lines.append([f"`{row.name}`", f"`{found['command']}`", found["digest"], found["commit"]])
    return table(["training", "trained by", "digest", "measured at"], lines)
