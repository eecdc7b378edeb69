"""The tables of docs/studies/ablations: each ablation beside the published one.

The intervals are paired over pictures; the change with each seed stands beside them.
"""

import re
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from steadyseg.studies.ablations.bootstrap import paired_bootstrap
from steadyseg.studies.ablations.matrix import ABLATIONS, SEEDS, Ablation, Variant
from steadyseg.studies.ablations.per_picture import read_per_picture
from steadyseg.studies.harness.tables import Tables, read_record, table


def tables() -> Tables:
    """The tables by their names in the page, those of the ablations that are trained with all seeds."""
    record = read_record("ablations")
    made = {name_of(ablation): ablation_table(ablation, record) for ablation in ABLATIONS}
    return {name: partial(str, text) for name, text in made.items() if text}


def name_of(ablation: Ablation) -> str:
    """The title in lower case, words joined by hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", ablation.title.lower()))


def ablation_table(ablation: Ablation, record: dict[str, Any]) -> str:
    """The variants beside the published figures; empty where the first variant or all others are missing."""
    there = [variant for variant in ablation.variants if all(name(variant, seed) in record for seed in SEEDS)]
    if len(there) < 2 or there[0] is not ablation.variants[0]:
        return ""
    lines = [line(variant, there[0], record) for variant in there]
    columns = ", NLL, change, by seed, accuracy %, change, by seed, ECE %, published NLL, accuracy, ECE".split(", ")
    return table(columns, lines)


def line(variant: Variant, base: Variant, record: dict[str, Any]) -> list[str]:
    figures = [record[name(variant, seed)]["rows"]["figures"] for seed in SEEDS]
    cells = [variant.words, f"{mean(figures, 'nll'):.3f}", *change(variant, base, record, "nll", 1.0, 3)]
    cells += [f"{100 * mean(figures, 'accuracy'):.1f}", *change(variant, base, record, "right", 100.0, 1)]
    cells += [f"{100 * mean(figures, 'ece'):.1f}"]
    published = variant.published or ("-", "-", "-")
    return cells + [str(value) for value in published]


def change(variant: Variant, base: Variant, record: dict[str, Any], key: str, scale: float, digits: int) -> list[str]:
    """Returns two cells: the mean change with its interval, and the change by seed."""
    if variant is base:
        return ["", ""]
    before, after = ([by_picture(record, one, seed, key) for seed in SEEDS] for one in (base, variant))
    found = paired_bootstrap(before, after)
    told = [f"{scale * value:+.{digits}f}" for value in (found.mean, found.low, found.high)]
    return [f"{told[0]} ({told[1]} to {told[2]})", ", ".join(f"{scale * value:+.{digits}f}" for value in found.by_seed)]


def by_picture(record: dict[str, Any], variant: Variant, seed: int, key: str) -> Tensor:
    """(pictures,) NLL, or 1 where it was right."""
    return read_per_picture(record[name(variant, seed)]["rows"])[key]


def name(variant: Variant, seed: int) -> str:
    return f"{variant.name}-{seed}"


def mean(figures: Sequence[dict[str, float]], key: str) -> float:
    return statistics.fmean(one[key] for one in figures)
