"""The tables of docs/studies/gating, from its record."""

from typing import Any

from torch import Tensor

from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.stretches import Stretches, intervals
from steadyseg.studies.gating.rules import RULES
from steadyseg.studies.harness.tables import Tables, bind, read_record, table

Rows = dict[str, Any]
BASE, *MEANS = RULES


def tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    rows = {name: part["rows"] for name, part in read_record("gating").items()}
    on_val = {name: found for name, found in rows.items() if "stretches" in found[BASE]}
    return bind(on_val, {"val": val, "classes": classes})


def val(rows: Rows) -> str:
    """The rules that are reported, on CamVid's val."""
    header = ["network", "rule", "NLL", "accuracy, %", "mIoU, %", "mIoU against single frames, points", "ECE, %"]
    header += ["consistency, %", "change agreement, %"]
    lines = []
    for network, found in rows.items():
        for name in RULES:
            row = found[name]
            shares = [f"{100 * row[key]:.2f}" for key in ("ece", "consistency", "change_agreement")]
            against = "-" if name == BASE else spread(*difference(row, found[BASE])["mIoU"])
            cells = [f"{row['nll']:.4f}", f"{100 * row['accuracy']:.2f}", f"{100 * row['miou']:.2f}", against]
            lines.append([network, name, *cells, *shares])
    return table(header, lines)


def classes(rows: Rows) -> str:
    """Change of each class's IoU on val, with intervals."""
    lines = []
    for network, found in rows.items():
        for name in MEANS:
            told = difference(found[name], found[BASE])
            lines.append([network, name, *(spread(*told[label]) for label in CAMVID.names)])
    return table(["network", "rule", *CAMVID.names], lines)


def difference(row: Rows, base: Rows) -> dict[str, tuple[float, float, float]]:
    """Points of IoU by class and of mIoU against a rule, each with its interval over the same stretches."""
    one, other = (Stretches.read(counts["stretches"]) for counts in (row, base))

    def changes(times: Tensor) -> dict[str, Tensor]:
        found = (100 * (one.iou(times) - other.iou(times))).nan_to_num(0.0)
        return dict(zip(CAMVID.names, found.T, strict=True)) | {"mIoU": found.mean(1)}

    return intervals(len(one.bins), changes)


def spread(value: float, low: float, high: float) -> str:
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"
