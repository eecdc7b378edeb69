"""The picture of docs/records/familiarity, drawn from its record."""

from pathlib import Path
from typing import Any

from steadyseg.core.reference import NOVEL
from steadyseg.studies.harness.panels import legend_below, new_figure, write_figure

COLOURS = {"town": "#dfe9f5", "motorway": "#f7e3cf", "photographs": "#e6dcf0"}


def draw(record: dict[str, Any], page: Path) -> None:
    """Plot of the familiarity of every frame of the cut stream."""
    streams = {name: found["cuts"] for name, found in record["streams"].items() if found}
    figure, axes = new_figure(1, 9, 2.6, rows=len(streams), sharex=True)
    for axis, (name, rows) in zip(axes, streams.items(), strict=True):
        began = 0
        for place in range(1, len(rows) + 1):
            if place == len(rows) or rows[place]["of"] != rows[began]["of"]:
                axis.axvspan(began - 0.5, place - 0.5, color=COLOURS[rows[began]["of"]], lw=0)
                axis.text((began + place) / 2, 1.03, rows[began]["of"], ha="center", fontsize=8)
                began = place
        axis.plot([row["familiarity"] for row in rows], color="tab:red", label="familiarity (share at least as novel)")
        axis.plot([row["expected_accuracy"] for row in rows], color="tab:blue", label="expected accuracy")
        axis.plot([row.get("accuracy", float("nan")) for row in rows], "k--", lw=1, label="accuracy, where labelled")
        axis.axhline(NOVEL, color="0.5", lw=0.8, ls=":")
        axis.set(title=name, ylim=(0, 1.12), ylabel="share")
        axis.title.set_position((0.5, 1.08))
    axes[-1].set_xlabel("frame (15 Hz)")
    legend_below(figure, axes)
    write_figure(page / "cuts.png", figure, dpi=130)
