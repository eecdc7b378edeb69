"""The picture of docs/records/guide: what remains over the accuracy among it."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.studies.harness.panels import new_figure, write_figure

SETS = {
    "val": ("tab:blue", "val stream, the thresholds' own"),
    "test": ("tab:orange", "33 unseen moving stills of test"),
}
MARKED = (0.5, 0.7, 0.9)
"""Thresholds that are written into the plot."""


def draw(record: dict[str, Any], path: Path) -> None:
    """A plot of each network: accuracy of the kept pixels over their share, by threshold."""
    figure, axes = new_figure(len(record), 4.2, 3.9, sharey=True)
    for axis, (name, found) in zip(axes, record.items(), strict=True):
        for key, (colour, words) in SETS.items():
            kept, accuracy = (100 * np.array(found[key][row][:-1]) for row in ("kept", "accuracy"))
            axis.plot(kept, accuracy, color=colour, label=words)
            for threshold in MARKED:
                place = math.ceil(threshold * 255)
                axis.plot(kept[place], accuracy[place], "o", color=colour, ms=4)
                axis.annotate(
                    f"{threshold:g}",
                    (kept[place], accuracy[place]),
                    textcoords="offset points",
                    xytext=(4, 4),
                    fontsize=8,
                )
        axis.set(title=name, xlabel="pixels that remain, %", xlim=(40, 101))
    axes[0].set(ylabel="right pixels among them, %")
    axes[0].legend(fontsize=8, loc="lower left")
    write_figure(path, figure, dpi=130)
