"""docs/studies/ablations: each ablation's table beside the published one, with intervals over pictures and both seeds'
changes."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from studies.ablations.bootstrap import paired_bootstrap
from studies.ablations.matrix import ABLATIONS, EPOCHS, SEEDS, WIDTH, Ablation, Variant, to_train
from studies.harness.document import fill, table

FINDINGS = Path(__file__).parent / "findings.md"
HEAD = f"""# Ablations at the size of two cores

ResNet-18 of width {WIDTH}, MC dropout 0.3, on 5,000 pictures of CIFAR-10, {EPOCHS} epochs, {len(SEEDS)} seeds;
measured on 1,000 test pictures, mean of 50 dropout passes. The published figures beside them are of width 64 on
50,000 pictures of CIFAR-100, 200 epochs, three seeds: they show the direction to look for, no value to reach. In
brackets the change against the first line of its table, with the interval that holds 95 % of 2,000 paired
resamples of the pictures; then the change with each seed. An interval over pictures says nothing of other
trainings: where the two seeds disagree in sign, nothing is shown."""


def document(record: dict[str, Any]) -> str:
    """The whole text; a variant that was not trained with all seeds is left out and named."""
    parts = [HEAD]
    if all(name(variant, seed) in record for variant, seed in to_train()):
        parts.append(fill(FINDINGS.read_text(), lambda words: figure(record, words)))
    for ablation in ABLATIONS:
        made = section(ablation, record)
        if made:
            parts.append(made)
    return "\n\n".join(parts) + "\n"


def figure(record: dict[str, Any], words: str) -> str:
    """`VARIANT KEY`, the mean over seeds; `VARIANT - OTHER KEY`, the difference of two with its sign."""
    *names, key = words.split()
    scale, digits = {"nll": (1.0, 3)}.get(key, (100.0, 1))
    variants = [next(variant for variant, _ in to_train() if variant.name == one) for one in names[::2]]
    if len(variants) == 1:
        figures = [record[name(variants[0], seed)]["rows"]["figures"] for seed in SEEDS]
        return f"{scale * mean(figures, key):.{digits}f}"
    told = change(*variants, record, "right" if key == "accuracy" else key, scale, digits)
    return told[0].split()[0]


def section(ablation: Ablation, record: dict[str, Any]) -> str:
    """Empty where the first variant or all others are missing."""
    there = [variant for variant in ablation.variants if all(name(variant, seed) in record for seed in SEEDS)]
    if len(there) < 2 or there[0] is not ablation.variants[0]:
        return ""
    missing = [variant.words for variant in ablation.variants if variant not in there]
    lines = [line(variant, there[0], record) for variant in there]
    left = f"\n\nNot trained: {', '.join(missing)}." if missing else ""
    columns = (
        "",
        "NLL",
        "change",
        "by seed",
        "accuracy %",
        "change",
        "by seed",
        "ECE %",
        "published NLL",
        "accuracy",
        "ECE",
    )
    return f"## {ablation.title}\n{ablation.source}.\n\n{table(columns, lines)}{left}"


def line(variant: Variant, base: Variant, record: dict[str, Any]) -> list[str]:
    figures = [record[name(variant, seed)]["rows"]["figures"] for seed in SEEDS]
    cells = [variant.words, f"{mean(figures, 'nll'):.3f}", *change(variant, base, record, "nll", 1.0, 3)]
    cells += [f"{100 * mean(figures, 'accuracy'):.1f}", *change(variant, base, record, "right", 100.0, 1)]
    cells += [f"{100 * mean(figures, 'ece'):.1f}"]
    published = variant.published or ("-", "-", "-")
    return cells + [str(value) for value in published]


def change(variant: Variant, base: Variant, record: dict[str, Any], key: str, scale: float, digits: int) -> list[str]:
    """[mean with its interval, by seed]."""
    if variant is base:
        return ["", ""]
    sides = [[by_picture(record, one, seed, key) for seed in SEEDS] for one in (base, variant)]
    found = paired_bootstrap(*sides)
    told = [f"{scale * value:+.{digits}f}" for value in (found.mean, found.low, found.high)]
    return [f"{told[0]} ({told[1]} to {told[2]})", ", ".join(f"{scale * value:+.{digits}f}" for value in found.by_seed)]


def by_picture(record: dict[str, Any], variant: Variant, seed: int, key: str) -> Tensor:
    """(pictures,) NLL, or 1 where it was right."""
    kept = record[name(variant, seed)]["rows"][key]
    values = kept.split() if key == "nll" else list(kept)
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


def name(variant: Variant, seed: int) -> str:
    return f"{variant.name}-{seed}"


def mean(figures: Sequence[dict[str, float]], key: str) -> float:
    return statistics.fmean(one[key] for one in figures)
