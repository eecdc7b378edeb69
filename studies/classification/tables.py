"""The tables of docs/studies/classification, from its record."""

from typing import Any

from steadyseg.studies.classification.effects import EFFECTS, Change, changes
from steadyseg.studies.classification.matrix import EVERY, FACTORS, Classifier, subjects
from steadyseg.studies.harness.tables import Tables, bind, read_record, spread, table

SIZES = (1, 2, 5, 50)
PUBLISHED = {
    "plain": (0.182, 95.2, 2.75),
    "smooth": (0.173, 95.4, 2.31),
    "mc": (0.157, 95.2, 1.14),
    "mc-smooth": (0.144, 95.5, 1.04),
}
"""ResNet-18, CIFAR-10, all 50,000 pictures, width 64, N = 50, mean of 3 (arXiv 2105.12639, Table E.1): NLL, accuracy,
ECE."""
ABSENT = "-"


def tables() -> Tables:
    """The tables by their names in the page."""
    record = read_record("classification")
    makers = {"kinds": kinds_table, "effects": effects_table, "runs": runs_table, "sizes": sizes_table}
    return {**bind(measured_of(record), makers), **bind(record, {"commands": commands})}


def measured_of(record: dict[str, Any]) -> dict[str, Any]:
    """Rows by network, in the study's order."""
    return {name: record[name]["rows"] for name in subjects() if name in record}


def best_row(record: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The row of 50 passes where the network has dropout, else that of one pass."""
    found = record.get(name)
    if not found:
        return None
    return found["passes"][-1] if "passes" in found else found["off"]


def kinds_table(record: dict[str, Any]) -> str:
    """Table E.1's four rows, published and ours."""
    header = ["dropout", "smoothing", "published: NLL", "acc", "ECE", "ours: NLL", "acc", "ECE", "seeds"]
    lines = []
    for factors in FACTORS:
        kind = Classifier("resnet18", *factors).kind
        rows = [row for seed in (0, 1) if (row := best_row(record, Classifier("resnet18", *factors, seed).name))]
        nll, accuracy, ece = PUBLISHED[kind]
        ours = [
            spread([row["nll"] for row in rows], 1, 3),
            spread([row["accuracy"] for row in rows], 100, 1),
            spread([row["ece"] for row in rows], 100, 1),
            str(len(rows)),
        ]
        given = [f"{nll:.3f}", f"{accuracy:.1f}", f"{ece:.2f}"]
        lines.append([*("yes" if flag else ABSENT for flag in factors), *given, *ours])
    return table(header, lines)


def effects_table(record: dict[str, Any]) -> str:
    """Effect of each method, paired by picture."""
    header = ["effect", "NLL", "of each seed", "accuracy, points", "of each seed"]
    lines = []
    for title, (before, after) in EFFECTS.items():
        found = changes(record, before, after)
        if found:
            cells = (format_change(found["nll"], 1, 3), format_change(found["right"], 100, 1))
            lines.append([title, *(cell for pair in cells for cell in pair)])
    return table(header, lines)


def format_change(change: Change, scale: float, digits: int) -> tuple[str, str]:
    """-0.052 ± 0.017, and the mean of each seed."""
    by_seed = ", ".join(f"{scale * mean:+.{digits}f}" for mean in change.by_seed)
    return f"{scale * change.mean:+.{digits}f} ± {scale * change.half:.{digits}f}", by_seed


def runs_table(record: dict[str, Any]) -> str:
    """Every network: dropout off and by the number of passes."""
    header = ["network", "row", "NLL", "acc", "ECE", "Brier", "AURC", "acc-90", "freq-90"]
    lines = []
    for name, found in record.items():
        rows = [("dropout off", found["off"])] + [
            (f"N = {row['n']}", row) for row in found.get("passes", []) if row["n"] in SIZES
        ]
        for label, row in rows:
            shares = [f"{100 * row[key]:.1f}" for key in ("accuracy", "ece", "brier")]
            certain = [ABSENT if row[key] is None else f"{100 * row[key]:.1f}" for key in ("acc_90", "freq_90")]
            lines.append([name, label, f"{row['nll']:.4f}", *shares, f"{row['aurc']:.4f}", *certain])
    return table(header, lines)


def sizes_table(record: dict[str, Any]) -> str:
    """NLL by ensemble size of the networks with dropout."""
    sizes = (1, 2, 3, 5, 10, 20, 50)
    lines = []
    for name, found in record.items():
        by_size = {point["n"]: point["nll"] for point in found.get("curve", [])}
        if by_size:
            lines.append([name, *(f"{by_size[size]:.4f}" for size in sizes)])
    return table(["network", *map(str, sizes)], lines)


def commands(record: dict[str, Any]) -> str:
    header = ["network", "trained by", "hours", "digest of data and weights", "measured at"]
    lines = []
    for one in EVERY:
        found = record.get(one.name)
        told = [found["rows"]["trained"][0]["hours_of_last_start"], found["digest"], found["commit"]] if found else []
        lines.append([f"`{one.name}`", f"`{one.command}`", *map(str, told or [ABSENT] * 3)])
    return table(header, lines)
