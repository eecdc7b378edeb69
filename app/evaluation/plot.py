"""Plot of an evaluation: the reliability diagram and, for a classifier, the NLL by ensemble size."""

import importlib.util
from pathlib import Path
from typing import Any

from app.report_file import write_figure
from core.errors import InputError
from core.system.files import require_place

SUFFIXES = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREY = "#2563eb", "#d97706", "#6b7280"


def check_plot(path: Path | None, *, overwrite: bool) -> None:
    """Raises InputError, before any work is done, where `path` cannot become a picture."""
    if path is None:
        return
    require_place(path, "a plot", SUFFIXES, overwrite=overwrite)
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install 'steadyseg[calibrate]'")


def write_plot(path: Path, record: dict[str, Any]) -> None:
    """Draws the record of an evaluation; the keys `curve` and `rows` are those of a classifier."""
    from matplotlib.figure import Figure

    curve = record.get("curve", [])
    panels = 2 if len(curve) > 1 else 1
    figure = Figure(figsize=(4.2 * panels, 4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    draw_reliability(axes[0], record)
    if panels == 2:
        draw_curve(axes[1], record)
    write_figure(path, figure, dpi=150)


def draw_reliability(axes: Any, record: dict[str, Any]) -> None:
    """Draws the accuracy of each of ten confidence bins; the more pixels a bin has, the darker its bar."""
    bins = [one for one in record["reliability"] if one["count"]]
    total = sum(one["count"] for one in bins)
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    for one in bins:
        shade = min(1.0, 0.15 + (one["count"] / total) ** 0.5)
        axes.bar((one["lower"] + one["upper"]) / 2, one["accuracy"], width=0.095, color=BLUE, alpha=shade)
    axes.plot([one["confidence"] for one in bins], [one["accuracy"] for one in bins], "o", color=BLUE, markersize=4)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="it says (confidence)",
        ylabel="is right (accuracy)",
        title=f"{record['mode']} x{record['samples']}: ECE {record['ece']:.2%}",
    )


def draw_curve(axes: Any, record: dict[str, Any]) -> None:
    """Draws the NLL after 1, 2, ... members, and a line for the same network with dropout off."""
    axes.plot([point["n"] for point in record["curve"]], [point["nll"] for point in record["curve"]], color=BLUE)
    off = [row["nll"] for row in record["rows"] if row["n"] == 0]
    if off:
        axes.axhline(off[0], color=ORANGE, linestyle="--", linewidth=1, label="dropout off")
        axes.legend()
    what = "dropout passes" if record["mode"] == "bnn" else "networks"
    axes.set(xlabel=f"{what} (N)", ylabel="NLL (nats)", xscale="log", title=f"{record['data']} {record['split']}")
