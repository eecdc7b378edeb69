"""A report as the page shows it: the numbers, then the classes by their share of the picture."""

from html import escape
from typing import Any

from steadyseg.app.sources.source import LOSSES
from steadyseg.app.video.report import figure_rows
from steadyseg.app.video.verdict import marked

METRICS = {
    "accuracy": "accuracy",
    "miou": "mean IoU",
    "ece": "calibration error (ECE)",
    "nll": "negative log likelihood (NLL)",
    "brier": "Brier score",
    "consistency": "temporal consistency",
}
"""Metrics against labels: key in the report and name on the page."""
MAX_CLASSES = 6


def report_html(record: dict[str, Any]) -> str:
    """`StreamReport.record` as HTML, with lost frames and all changes to pictures."""
    figures = [("frames", f"{record['frames']}"), *figure_rows(record)]
    tables = "".join(map(_table, (figures, _metrics(record), _shares(record))))
    return f"{_verdict(record)}<div class='report'>{tables}{_notes(record)}</div>"


def _verdict(record: dict[str, Any]) -> str:
    """The verdict on this file, the same as in `video` and `batch`."""
    words = "; ".join((record["verdict"], *([record["caveat"]] if "caveat" in record else [])))
    return f"<div class='verdict' data-level='{record['state']}'>{escape(words)}</div>"


def _metrics(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The table of metrics; empty if the source has no labels."""
    return [(name, f"{record[key]:.3f}") for key, name in METRICS.items() if isinstance(record.get(key), float)]


def _shares(record: dict[str, Any]) -> list[tuple[str, str]]:
    shares = sorted(record["class_shares"].items(), key=lambda item: -item[1])
    seen = [(name, share) for name, share in shares if share > 0]
    rows = [(marked(name, record["state"]), f"{share:.1%}") for name, share in seen[:MAX_CLASSES]]
    rest = sum(share for _, share in seen[MAX_CLASSES:])
    return [*rows, ("other classes", f"{rest:.1%}")] if rest else rows


def _notes(record: dict[str, Any]) -> str:
    lost = [f"{count} {LOSSES[cause]}" for cause, count in record["losses"].items() if count]
    uncalibrated = [] if record["calibrated"] else [f"not calibrated: {record['note']}"]
    notes = [f"<span class='notice'>{escape(note)}</span>" for note in (*uncalibrated, *lost, *record["notes"])]
    return f"<div class='notes'>{' '.join(notes)}</div>"


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


SIDE = 180
LEFT, BELOW = 30, 26


def metrics_html(metrics: dict[str, Any] | None) -> str:
    """HTML of accuracy, calibration error and the reliability diagram; empty without labels."""
    if metrics is None:
        return ""
    rows = [("accuracy so far", metrics["accuracy"]), ("calibration error (ECE)", metrics["ece"])]
    cells = "".join(f"<tr><th>{name}</th><td>{value:.1%}</td></tr>" for name, value in rows)
    return (
        f"<div class='learned'>{diagram(metrics['reliability'])}<div class='report'><table>{cells}</table>"
        "<p>Reliability diagram: of the pixels with confidence 80 %, 80 % should be right. Bars that end on the "
        "diagonal are calibrated, below it overconfident, above it underconfident. Dark bars hold many pixels.</p>"
        "</div></div>"
    )


def diagram(bins: list[dict[str, Any]]) -> str:
    """SVG: a bar of accuracy for each tenth of confidence, darker if frequent, with a dot at the mean confidence."""
    total = sum(entry["count"] for entry in bins) or 1
    bars = "".join(_bar(entry, entry["count"] / total) for entry in bins if entry["count"])
    floor, right = SIDE, LEFT + SIDE
    return (
        f"<svg viewBox='0 0 {LEFT + SIDE + 6} {SIDE + BELOW + 6}' role='img' aria-label='Reliability diagram' "
        f"fill='currentColor' font-size='11'>{bars}"
        f"<path d='M{LEFT} {floor}L{right} 0' stroke='currentColor' stroke-dasharray='4 3' fill='none'/>"
        f"<path d='M{LEFT} 0V{floor}H{right}' stroke='currentColor' fill='none'/>"
        f"<text x='{LEFT}' y='{floor + 14}'>0</text><text x='{right}' y='{floor + 14}' text-anchor='end'>1</text>"
        f"<text x='{LEFT + SIDE / 2}' y='{floor + 22}' text-anchor='middle'>confidence</text>"
        f"<text transform='translate(12 {SIDE / 2}) rotate(-90)' text-anchor='middle'>accuracy</text></svg>"
    )


def _bar(entry: dict[str, Any], share: float) -> str:
    x, width = LEFT + SIDE * entry["lower"], SIDE * (entry["upper"] - entry["lower"])
    top = SIDE * (1 - entry["accuracy"])
    opacity = min(1.0, 0.15 + share**0.5)
    return (
        f"<rect x='{x + 1:.1f}' y='{top:.1f}' width='{width - 2:.1f}' height='{SIDE - top:.1f}' fill='#2563eb' "
        f"opacity='{opacity:.2f}'/><circle cx='{LEFT + SIDE * entry['confidence']:.1f}' cy='{top:.1f}' r='2.5'/>"
    )
