"""How honest the confidence is, as one picture: a reliability diagram that fills while a labelled video plays."""

from typing import Any

SIDE = 180
LEFT, BELOW = 30, 26


def learned_html(metrics: dict[str, Any] | None) -> str:
    """Accuracy, calibration error and the diagram; nothing without labels."""
    if metrics is None:
        return ""
    rows = [("accuracy so far", metrics["accuracy"]), ("calibration error (ECE)", metrics["ece"])]
    cells = "".join(f"<tr><th>{name}</th><td>{value:.1%}</td></tr>" for name, value in rows)
    return (
        f"<div class='learned'>{diagram(metrics['reliability'])}<div class='report'><table>{cells}</table>"
        "<p>Of the pixels that it is 80 % sure about, 80 % should be right: bars that end on the diagonal are honest, below it "
        "it is too sure, above it too modest. Dark bars hold many pixels.</p></div></div>"
    )


def diagram(bins: list[dict[str, Any]]) -> str:
    """SVG: a bar of accuracy for each tenth of confidence, as dark as it is frequent; the dot is its mean confidence."""
    total = sum(one["count"] for one in bins) or 1
    bars = "".join(_bar(one, one["count"] / total) for one in bins if one["count"])
    floor, right = SIDE, LEFT + SIDE
    return (
        f"<svg viewBox='0 0 {LEFT + SIDE + 6} {SIDE + BELOW + 6}' role='img' aria-label='Reliability diagram' "
        f"fill='currentColor' font-size='11'>{bars}"
        f"<path d='M{LEFT} {floor}L{right} 0' stroke='currentColor' stroke-dasharray='4 3' fill='none'/>"
        f"<path d='M{LEFT} 0V{floor}H{right}' stroke='currentColor' fill='none'/>"
        f"<text x='{LEFT}' y='{floor + 14}'>0</text><text x='{right}' y='{floor + 14}' text-anchor='end'>1</text>"
        f"<text x='{LEFT + SIDE / 2}' y='{floor + 22}' text-anchor='middle'>it says (confidence)</text>"
        f"<text transform='translate(12 {SIDE / 2}) rotate(-90)' text-anchor='middle'>is right (accuracy)</text></svg>"
    )


def _bar(one: dict[str, Any], share: float) -> str:
    x, width = LEFT + SIDE * one["lower"], SIDE * (one["upper"] - one["lower"])
    top = SIDE * (1 - one["accuracy"])
    opacity = min(1.0, 0.15 + share**0.5)
    return (
        f"<rect x='{x + 1:.1f}' y='{top:.1f}' width='{width - 2:.1f}' height='{SIDE - top:.1f}' fill='#2563eb' "
        f"opacity='{opacity:.2f}'/><circle cx='{LEFT + SIDE * one['confidence']:.1f}' cy='{top:.1f}' r='2.5'/>"
    )
