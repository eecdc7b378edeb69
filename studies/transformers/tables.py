"""The tables of docs/studies/transformers, from its record and the reports beside it."""

import json
from collections.abc import Sequence
from typing import Any

import torch

from steadyseg.studies.harness.findings import half_width
from steadyseg.studies.harness.study import PAGES
from steadyseg.studies.harness.tables import Tables, bind, read_record, spread, table
from steadyseg.studies.transformers.build_up import build_up
from steadyseg.studies.transformers.expectations import STATEMENTS
from steadyseg.studies.transformers.measure import JPEG, OFFICIAL, TRAINED
from steadyseg.studies.transformers.rows import COMPARED, PILOTS, ROWS, SEEDS, SUBSET

PAGE = PAGES / "transformers"
PAIRS = (("vit6", "preresnet18"), ("alternet18", "preresnet18"), ("alternet18", "vit6"))
SIZES = (2500, 5000, SUBSET)
REACHES = {
    "all patches, class token": "vit6",
    "all patches, mean of the tokens": "vit6-gap",
    "5 x 5 patches, mean of the tokens": "vit6-gap-local5",
    "3 x 3 patches, mean of the tokens": "vit6-gap-local3",
}
ABSENT = "-"
Record = dict[str, Any]
"""Rows by name of the training."""


def tables() -> Tables:
    """The tables by their names in the page."""
    record = {name: found["rows"] for name, found in read_record("transformers").items()}
    makers = {
        "expected": expected_table,
        "whole": whole_table,
        "networks": networks_table,
        "paired": paired_table,
        "sizes": sizes_table,
        "reach": reach_table,
        "build-up": build_up_table,
        "rates": rates_table,
        "left": left_table,
    }
    return bind(record, makers)


def expected_table(_: Record) -> str:
    """The statements of the paper, as far as their studies were run."""
    lines = []
    for one in STATEMENTS:
        file = PAGE / one.study / "report.json"
        found = one.look(json.loads(file.read_text())) if file.exists() else None
        if found and found.of:
            lines.append(
                [one.words, f"[{one.study}]({one.study}/report.md)", found.figures, f"{found.holds} of {found.of}"]
            )
    return table(("arXiv 2202.06709 states", "study", "here, by seed or from lowest to highest", "holds in"), lines)


def cells(figures: dict[str, float]) -> list[str]:
    """Accuracy in percent, NLL and ECE in percent."""
    return [f"{100 * figures['accuracy']:.1f}", f"{figures['nll']:.3f}", f"{100 * figures['ece']:.1f}"]


def whole_table(record: Record) -> str:
    """The networks trained on all of CIFAR-10, then the included classifiers."""
    trained = {name: found for name, found in record.items() if name.startswith("cifar10-")}
    return by_test_set(trained | {f"{name} (included)": found for name, found in included().items()})


def included() -> Record:
    """The figures of the included classifiers, by name."""
    found = json.loads((PAGE / "included.json").read_text())
    return {name: found[name]["rows"] for name in sorted(found)}


def included_table(name: str) -> str:
    """The figures of one included classifier."""
    return by_test_set({name: included()[name]})


def by_test_set(record: Record) -> str:
    """Figures of both test sets, with dropout off and by number of passes."""
    lines = []
    for name, found in record.items():
        passes = {kind: {row["n"]: row for row in found[kind].get("passes", [])} for kind in (JPEG, OFFICIAL)}
        kinds = {kind: {0: found[kind]["off"], **passes[kind]} for kind in passes}
        for n in kinds[OFFICIAL]:
            told = "dropout off" if passes[OFFICIAL] and not n else ABSENT if not n else f"{n}"
            both = (cells(kinds[kind][n]) if n in kinds[kind] else [ABSENT] * 3 for kind in kinds)
            lines.append([name, told, *(cell for group in both for cell in group)])
    head = [
        f"{kind}: {what}" if not i else what
        for kind in ("JPEG", "official")
        for i, what in enumerate(("accuracy", "NLL", "ECE"))
    ]
    return table(("network", "passes", *head), lines)


def networks_table(record: Record) -> str:
    """Every network of the comparison."""
    lines = []
    for name, found in record.items():
        if JPEG not in found or name.startswith("cifar10-"):
            continue
        about = (
            f"{found['parameters'] / 1e6:.2f}",
            str(found["images"]),
            str(found["epochs"]),
            f"{found['minutes']:.0f}",
        )
        trained = found[TRAINED]["off"]
        lines.append(
            [name, *about, f"{trained['nll']:.3f}", *cells(found[JPEG]["off"]), *cells(found[OFFICIAL]["off"])]
        )
    head = ("network", "million weights", "pictures", "epochs", "minutes", "NLL of trained pictures")
    return table((*head, "JPEG: accuracy", "NLL", "ECE", "official: accuracy", "NLL", "ECE"), lines)


def right_of(found: dict[str, Any]) -> torch.Tensor:
    """Correctness (pictures,) of one pass."""
    digits = f"{int(found['right'], 16):0{found['images']}b}"
    return torch.tensor([int(digit) for digit in digits], dtype=torch.float64)


def paired_table(record: Record) -> str:
    """Differences of accuracy, paired by picture, with their intervals over pictures."""
    lines = []
    for first, second in PAIRS:
        pairs = [
            (record[f"adamw-{first}-{seed}"], record[f"adamw-{second}-{seed}"])
            for seed in SEEDS
            if {f"adamw-{first}-{seed}", f"adamw-{second}-{seed}"} <= record.keys()
        ]
        if not pairs:
            continue
        line = [f"{first} - {second}"]
        for kind in (JPEG, OFFICIAL):
            changes = torch.stack([right_of(a[kind]) - right_of(b[kind]) for a, b in pairs])
            mean = changes.mean(0)
            half = half_width(mean)
            seeds = ", ".join(f"{100 * float(one):+.1f}" for one in changes.mean(1))
            line += [f"{100 * float(mean.mean()):+.1f} ± {100 * half:.1f}", seeds]
        lines.append(line)
    head = ("accuracy, points", "JPEG", "of each seed", "official", "of each seed")
    return table(head, lines)


def sizes_table(record: Record) -> str:
    """NLL of trained and of test pictures by number of pictures trained on, at equally many steps; seed 0."""
    lines = []
    for name, _ in COMPARED:
        rows = [record.get(f"adamw-{name}{'' if size == SUBSET else f'-{size}'}-0") for size in SIZES]
        if any(rows):
            figures = [
                [
                    f"{row[TRAINED]['off']['nll']:.3f}",
                    f"{row[JPEG]['off']['nll']:.3f}",
                    f"{100 * row[JPEG]['off']['accuracy']:.1f}",
                ]
                if row
                else [ABSENT] * 3
                for row in rows
            ]
            lines.append([name, *(cell for group in figures for cell in group)])
    head = [what for size in SIZES for what in (f"{size}: NLL of trained pictures", "of test", "accuracy of test")]
    return table(("network", *head), lines)


def reach_table(record: Record) -> str:
    """The ViT by the patches that a patch attends to, and by its head; seed 0."""
    lines = [
        [words, f"{found[TRAINED]['off']['nll']:.3f}", *cells(found[JPEG]["off"])]
        for words, name in REACHES.items()
        if (found := record.get(f"adamw-{name}-0"))
    ]
    return table(("a patch attends to", "NLL of trained pictures", "test: accuracy", "NLL", "ECE"), lines)


def build_up_table(record: Record) -> str:
    """Held-out and test accuracy by attention blocks of each stage."""
    layouts: dict[str, list[dict[str, Any]]] = {}
    for row in build_up(lambda row: record[row.name]["held_out"]["accuracy"] if row.name in record else None):
        if row.name in record:
            layouts.setdefault(row.name.split("-")[2], []).append(record[row.name])
    lines = [
        [
            ", ".join(layout),
            str(sum(map(int, layout))),
            spread([row["held_out"]["accuracy"] for row in rows], 100, 1),
            spread([row[JPEG]["off"]["accuracy"] for row in rows], 100, 1),
            str(len(rows)),
        ]
        for layout, rows in layouts.items()
    ]
    return table(("attention blocks by stage", "in all", "held-out accuracy", "test accuracy", "seeds"), lines)


def rates_table(record: Record) -> str:
    """Held-out accuracy of the short trainings that choose the learning rate."""
    lines = []
    for rate, rows in PILOTS.items():
        found = [record[row.name]["held_out"]["accuracy"] if row.name in record else None for row in rows]
        if any(one is not None for one in found):
            lines.append([f"{rate:g}", *(ABSENT if one is None else f"{100 * one:.1f}" for one in found)])
    names = [row.name.split("-")[-1] for row in next(iter(PILOTS.values()))]
    return table(("learning rate", *names), lines)


def left_table(record: Record) -> str:
    """The trainings that are listed and were not run."""
    left: Sequence[str] = [row.name for row in ROWS if row.name not in record]
    return table(("not trained",), [[f"`{name}`"] for name in left])
