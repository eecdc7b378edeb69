"""Feature maps block by block: which units have one, figures of each in the order of computation, plots by depth."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.analysis.measures.features import trace, watch_maps
from steadyseg.studies.analysis.measures.units import Unit, find_units, list_units
from steadyseg.studies.analysis.study import Results, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget

LEAST_SIDE = 2
"""Points on a side of the smallest map that is analyzed."""
Place = tuple[str, str]
"""Name of a unit, and which of its maps: "in" and "out" of a smoothing layer, "" of any other unit."""
COLUMNS = (("unit", "unit"), ("map", "map"), ("size", "size"))
"""Columns of a table of maps behind the network, and the keys of `with_sizes`."""


class MapTally:
    """Figures of every feature map of one network, summed over batches of pictures."""

    def __init__(self, target: StudyTarget, units: Sequence[Unit], **about: Any) -> None:
        """about: what every row begins with, beside the network's name."""
        self.target, self.units, self.about = target, units, {"model": target.name} | about
        self.sizes: dict[Place, tuple[int, ...]] = {}
        """(C, H, W) of each map, in the order of computation."""
        self.seen = 0

    def add(self, batch: Tensor, seed: int) -> None:
        """Adds normalised pictures (B, 3, h, w); the masks of dropout come from the seed."""
        raise NotImplementedError

    def figures(self, place: Place) -> Results:
        """The figures of one map."""
        raise NotImplementedError

    @contextmanager
    def watching(self, see: Callable[[Place, Tensor], None]) -> Iterator[None]:
        """While the context is open, `see` gets every map (B, C, H, W) with its place."""

        def see_unit(unit: Unit, before: Tensor, after: Tensor) -> None:
            for side, maps in ({"in": before, "out": after} if unit.kind == "smoothing" else {"": after}).items():
                self.sizes[unit.name, side] = tuple(maps.shape[1:])
                see((unit.name, side), maps)

        with watch_maps(self.units, see_unit, self.target.layout):
            yield

    def rows(self) -> list[Results]:
        """One row for each map, in the order of computation."""
        return [
            {
                **self.about,
                "unit": place[0],
                "map": place[1],
                "depth": depth,
                **dict(zip(("channels", "height", "width"), size, strict=True)),
                **self.figures(place),
            }
            for depth, (place, size) in zip(depths(side for _, side in self.sizes), self.sizes.items(), strict=True)
        ]


def add_batches(context: StudyContext, tallies: Sequence[MapTally], batches: Sequence[range]) -> Iterator[Results]:
    """Gives each batch to all tallies and yields the rows so far."""
    for number, numbers in enumerate(context.track(batches, "batches of pictures")):
        for one in tallies:
            one.add(one.target.batch(numbers), mix_seed(context.options.seed, number))
        yield {"rows": [row for one in tallies for row in one.rows()], "seen": tallies[0].seen}


def units_with_maps(context: StudyContext, target: StudyTarget) -> list[Unit]:
    """The units that the job names, or every block and smoothing layer, that return a feature map; notes what is small.

    InputError for a named unit without a map or with a map below `LEAST_SIDE`, and where nothing is left.
    """
    network, named = target.subject.network, context.job.units
    units = find_units(network, named, target.name) or [
        *list_units(network, "block"),
        *list_units(network, "smoothing"),
    ]
    target.subject.switch("dnn", None)
    seen = trace(network, target.batch(range(1)), units, target.layout)
    small = [one for one in seen if min(one.size[1:]) < LEAST_SIDE]
    kept = [one.unit for one in seen if one not in small]
    told = ", ".join(f"{one.unit.name} ({one.size[2]}x{one.size[1]})" for one in small)
    if (named and len(kept) < len(named)) or not kept:
        mapless = [unit.name for unit in units if unit not in [one.unit for one in seen]]
        what = f"{told}: a map with a side below {LEAST_SIDE}" if small else f"{', '.join(mapless)}: no feature map"
        raise InputError(f"{target.name}: {what} cannot be analyzed; name other units or give larger pictures")
    if small:
        context.note(f"{target.name}: left out, as a side of the map is below {LEAST_SIDE}: {told}")
    return kept


def depths(sides: Iterable[str]) -> list[float]:
    """Relative depth of feature maps by name, 0 at the first block and 1 at the last. A smoothing layer's `in` has the
    depth of the block before it, and its `out` lies half way to the next block. So networks with and without smoothing
    can be compared."""
    places, blocks = [], -1
    for side in sides:
        blocks += side == ""
        places.append(max(0, blocks) + 0.5 * (side == "out"))
    return [place / max(1, blocks) for place in places]


def with_sizes(rows: Iterable[Results]) -> list[Results]:
    """The rows with `size`, width x height."""
    return [row | {"size": f"{row['width']}x{row['height']}"} for row in rows]


def smoothing_pairs(rows: Sequence[Results]) -> Iterator[tuple[Results, Results]]:
    """(row of the map that enters, row of the map that leaves) of every smoothing layer; the two follow each other."""
    for before, after in pairwise(rows):
        same = all(before.get(key) == after.get(key) for key in ("model", "mode", "unit"))
        if same and (before["map"], after["map"]) == ("in", "out"):
            yield before, after
