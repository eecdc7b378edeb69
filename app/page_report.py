"""A report as the page shows it: the figures, then the classes by their share of the picture."""

from typing import Any

from app.page_legend import escaped
from app.source_info import LOSSES

METRICS = {
    "accuracy": "accuracy",
    "miou": "mean IoU",
    "ece": "calibration error (ECE)",
    "nll": "negative log likelihood",
    "brier": "Brier score",
    "consistency": "consistency of neighbours",
}
"""What is measured against labels: key in the report, name on the page."""
MOST_CLASSES = 6


def report_html(record: dict[str, Any]) -> str:
    """`StreamReport.record` as HTML; whatever was lost or changed on the way is named."""
    tables = "".join(_table(rows(record)) for rows in (_figures, _metrics, _shares))
    return f"<div class='report'>{tables}{_notes(record)}</div>"


def _figures(record: dict[str, Any]) -> list[tuple[str, str]]:
    looks = "1 look" if record["samples"] == 1 else f"{record['samples']} looks"
    return [
        ("frames", f"{record['frames']}"),
        ("speed", f"{record['fps']:.1f} frames/s on {record['device']} ({record['executor']})"),
        ("mode", f"{record['mode']}, {looks} a frame"),
        ("mean confidence", f"{record['mean_confidence']:.3f}"),
        ("mean uncertainty (entropy)", f"{record['mean_entropy']:.3f}"),
        ("mean disagreement", f"{record['mean_disagreement']:.3f}"),
    ]


def _metrics(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Where the source knows its labels."""
    return [(name, f"{record[key]:.3f}") for key, name in METRICS.items() if isinstance(record.get(key), float)]


def _shares(record: dict[str, Any]) -> list[tuple[str, str]]:
    shares = sorted(record["class_shares"].items(), key=lambda item: -item[1])
    seen = [(name, share) for name, share in shares if share > 0]
    rows = [(name, f"{share:.1%}") for name, share in seen[:MOST_CLASSES]]
    rest = sum(share for _, share in seen[MOST_CLASSES:])
    return [*rows, ("other classes", f"{rest:.1%}")] if rest else rows


def _notes(record: dict[str, Any]) -> str:
    lost = [f"{count} {LOSSES[cause]}" for cause, count in record["losses"].items() if count]
    uncalibrated = [] if record["calibrated"] else ["not calibrated: confidences are the network's own"]
    notes = [f"<span class='notice'>{escaped(note)}</span>" for note in (*uncalibrated, *lost, *record["notes"])]
    return f"<div class='notes'>{' '.join(notes)}</div>"


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"
