"""docs/studies/training: the table of what was measured; what it means is written by hand in findings.md."""

import json
from pathlib import Path
from typing import Any

from core.corruptions.corruptions import TUNING_CORRUPTIONS
from core.errors import InputError
from core.system.files import write_atomic
from studies.harness.document import fill, section, table
from studies.harness.study import PAGES
from studies.training.measure import RARE, SEVERITY
from studies.training.recipes import RECIPES, Recipe, all_rows

PAGE = PAGES / "training"
RECORD = PAGE / "record.json"
FINDINGS = Path(__file__).parent / "findings.md"
ABSENT = "-"
KEYS = {"accuracy": (100, 1), "miou": (100, 1), "nll": (1, 3), "ece": (100, 1)}
"""Figures: what they are multiplied by, and the decimals shown."""


def write_document(record: dict[str, Any]) -> None:
    """Writes docs/studies/training/record.json and docs/studies/training."""
    write_atomic(RECORD, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())
    write_atomic(PAGE / "README.md", document(record).encode())


def document(record: dict[str, Any]) -> str:
    """The whole text; the record is {row: what figures.json of its run says}."""
    parts = [
        fill(FINDINGS.read_text(), lambda name: figure(record, name)),
        plain_table(record),
        rare_table(record),
        corruption_table(record),
        where_from(record),
    ]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def values_of(record: dict[str, Any], recipe: Recipe, *path: str) -> list[float]:
    """One for each seed that was trained."""
    values = []
    for seed in recipe.seeds:
        found = record.get(f"{recipe.name}-{seed}")
        if found:
            value = found["rows"]
            for key in path:
                value = value[key]
            values.append(float(value))
    return values


def spread(values: list[float], scale: float, digits: int) -> str:
    """The mean, and half the range where there are several seeds."""
    if not values:
        return ABSENT
    mean, half = scale * sum(values) / len(values), scale * (max(values) - min(values)) / 2
    return f"{mean:.{digits}f}" + (f" ± {half:.{digits}f}" if len(values) > 1 else "")


def figure(record: dict[str, Any], name: str) -> str:
    """`RECIPE KEY`, or `RECIPE - OTHER KEY`, the difference of their means with its sign; `hours`: of all that was
    trained."""
    if name == "hours":
        return f"{sum(found['rows']['hours'] for found in record.values()):.1f}"
    *words, key = name.split()
    means = []
    for word in words[::2]:
        recipe = next((recipe for recipe in RECIPES if recipe.name == word), None)
        values = values_of(record, recipe, *path_of(key)) if recipe else []
        if not values:
            raise InputError(f"{{{name}}}: there is no figure of {word}")
        means.append(sum(values) / len(values))
    scale, digits = KEYS.get(key, (100, 1))
    return f"{scale * means[0]:.{digits}f}" if len(means) == 1 else f"{scale * (means[0] - means[1]):+.{digits}f}"


def path_of(key: str) -> tuple[str, ...]:
    return ("iou", key) if key in RARE else ("corrupted", key) if key in TUNING_CORRUPTIONS else (key,)


def measured(record: dict[str, Any]) -> list[Recipe]:
    """The street's own network knows no CamVid and stands in no table."""
    return [r for r in RECIPES if r.data != "street" and values_of(record, r, "accuracy")]


def plain_table(record: dict[str, Any]) -> str:
    header = ["recipe", "what it changes", "epochs", "seeds", "hours", "accuracy", "mIoU", "NLL", "ECE"]
    lines = []
    for recipe in measured(record):
        hours = values_of(record, recipe, "hours")
        cells = [spread(values_of(record, recipe, key), *shown) for key, shown in KEYS.items()]
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
    words = (
        "On the held-back slice, dropout off, no temperature; percent but for NLL; mean over the seeds ± "
        "half their range. One "
        "seed is no measure of an effect smaller than that range."
    )
    return section("The table", words, table(header, lines))


def rare_table(record: dict[str, Any]) -> str:
    lines = [
        [f"`{recipe.name}`", *(spread(values_of(record, recipe, "iou", name), 100, 1) for name in RARE)]
        for recipe in measured(record)
    ]
    return section("Rare classes", "IoU in percent on the same slice.", table(["recipe", *RARE], lines))


def corruption_table(record: dict[str, Any]) -> str:
    lines = []
    for recipe in measured(record):
        cells = [spread(values_of(record, recipe, "corrupted", name), 100, 1) for name in TUNING_CORRUPTIONS]
        seen = [
            f"({cell})" if name in recipe.seen else cell for name, cell in zip(TUNING_CORRUPTIONS, cells, strict=True)
        ]
        lines.append([f"`{recipe.name}`", *seen])
    words = (
        f"Accuracy in percent on the same slice, severity {SEVERITY}, of the four corruptions that are meant "
        f"for tuning. In "
        "brackets: trained on this corruption, so it is no shift. The 15 common ones chose nothing here."
    )
    return section("Under corruption", words, table(["recipe", *TUNING_CORRUPTIONS], lines))


def where_from(record: dict[str, Any]) -> str:
    lines = []
    for row in all_rows():
        if found := record.get(row.name):
            flags = " ".join(row.flags(Path("CamVid"), Path("runs/training")))
            lines.append([f"`{row.name}`", f"`steadyseg train seg {flags}`", found["digest"], found["commit"]])
    return section("Where it comes from", "", table(["training", "trained by", "digest", "measured at"], lines))
