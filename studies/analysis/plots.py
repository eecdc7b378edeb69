"""Helpers for plots of feature maps by depth."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from steadyseg.studies.harness.panels import MARKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def depth_colours(count: int) -> list[tuple[float, ...]]:
    """`count` colours from dark (the first block) to light (the last)."""
    from matplotlib import colormaps

    return [tuple(colormaps["viridis"](0.9 * place / max(1, count - 1))) for place in range(count)]


def smoothing_pairs(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(row of the map that enters, row of the map that leaves) of every smoothing layer; the two follow each other."""
    for before, after in pairwise(rows):
        same = all(before.get(key) == after.get(key) for key in ("model", "mode", "unit"))
        if same and (before["map"], after["map"]) == ("in", "out"):
            yield before, after


def draw_by_depth(axis: "Axes", rows: Sequence[dict[str, Any]], key: str, number: int, label: str) -> None:
    """One network's figure of every map by depth; a broad segment leads from what enters a smoothing layer to what
    leaves."""
    colour, mark = f"C{number % 10}", MARKS[number % len(MARKS)]
    axis.plot(
        [row["depth"] for row in rows], [row[key] for row in rows], f"{mark}-", color=colour, ms=3, lw=1, label=label
    )
    for pair in smoothing_pairs(rows):
        axis.plot([row["depth"] for row in pair], [row[key] for row in pair], color=colour, lw=5, alpha=0.35)
    axis.set_xlabel("depth: first block 0, last block 1")
