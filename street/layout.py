"""The fixed parts of the endless street: blocks of 48 m, each made from its own random numbers."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from steadyseg.street.paint.camera import generator, pick
from steadyseg.street.paint.cars import MODELS, car_mesh
from steadyseg.street.paint.facades import STYLES, VARIANTS, facade
from steadyseg.street.paint.furniture import (
    LARGE,
    SIGNS,
    beacon,
    bollard,
    lamp_post,
    sign,
    telegraph_pole,
    traffic_light,
)
from steadyseg.street.paint.ground import FRONT_M, KERB_M
from steadyseg.street.paint.light import light_of
from steadyseg.street.paint.plants import SPECIES
from steadyseg.street.things import ROOFS, Building, Fixture, Thing, Tree, Vehicle, panels

BLOCK_M = 48.0
VERGE_M = KERB_M + 0.45
"""Lateral position of everything that stands along the kerb."""


@dataclass(frozen=True)
class Block:
    things: tuple[Thing, ...]
    crossing: float | None
    """Station of the zebra crossing; None without a crossing."""


@dataclass(frozen=True)
class Town:
    """The properties that all blocks of one street share."""

    styles: tuple[str, ...]
    species: tuple[str, ...]
    leafy: float
    """Share of block sides with trees along the kerb."""
    open_share: float
    """Share of block sides with houses behind gardens, or a park, instead of a closed row of fronts."""
    season: tuple[float, float, float]
    black_posts: bool
    ground: int


@lru_cache(maxsize=256)
def town(seed: int) -> Town:
    random = generator("road", seed, 1)
    pool = [style for style in STYLES if style != "house"]
    seasons = ((1.0, 1.0, 1.0), (1.06, 1.04, 0.9), (0.94, 1.0, 0.96), (1.5, 0.92, 0.62))
    return Town(
        styles=(*random.choice(pool, 3, replace=False).tolist(), "high street"),
        species=tuple(random.choice(list(SPECIES), 2, replace=False).tolist()),
        leafy=float(random.uniform(0.3, 0.75)),
        open_share=float(random.uniform(0.25, 0.5)),
        season=seasons[int(random.choice(4, p=(0.4, 0.25, 0.2, 0.15)))],
        black_posts=bool(random.random() < 0.5),
        ground=int(random.integers(3)),
    )


def has_crossing(seed: int, index: int) -> bool:
    return index % 2 == 0 and bool(generator("block", seed, index, 9).random() < 0.75)


@lru_cache(maxsize=128)
def block(seed: int, index: int) -> Block:
    """The block that covers stations index * BLOCK_M .. (index + 1) * BLOCK_M."""
    crossing = index * BLOCK_M + 6.0 if has_crossing(seed, index) else None
    things: list[Thing] = []
    for side in (-1, 1):
        random = generator("block", seed, index, side)
        things += _plots(seed, index, side, random)
        things += _kerbside(seed, index, side, random, crossing)
        things += _parked(seed, index, side, random, crossing)
    return Block(tuple(things), crossing)


def _plots(seed: int, index: int, side: int, random: np.random.Generator) -> list[Thing]:
    start, end = index * BLOCK_M, (index + 1) * BLOCK_M
    if random.random() >= town(seed).open_share:
        return _row(seed, side, start, end, random)
    return _gardens(seed, side, start, end, random) if random.random() < 0.65 else _park(seed, side, start, end, random)


def _row(seed: int, side: int, start: float, end: float, random: np.random.Generator) -> list[Thing]:
    """A closed row of fronts, stretched a little so that they fill the block."""
    chosen: list[tuple[str, int, float]] = []
    while sum(width for _, _, width in chosen) < end - start - 4.0:
        style = str(random.choice(town(seed).styles))
        variant = int(random.integers(VARIANTS))
        chosen.append((style, variant, facade(style, variant).width))
    stretch = (end - start) / sum(width for _, _, width in chosen)
    things: list[Thing] = []
    before = 0.0
    for style, variant, width in chosen:
        end, height = start + width * stretch, facade(style, variant).height
        things.append(_building(random, side, FRONT_M, start, end, style, variant, height > before))
        start, before = end, height
    return things


def _building(
    random: np.random.Generator, side: int, front: float, start: float, end: float, style: str, variant: int, bare: bool
) -> Building:
    """A building `front` metres beside the centreline with a random roof and tint."""
    roof = pick(random, ROOFS)
    level, warmth = random.uniform(0.88, 1.06), random.uniform(-0.04, 0.04)
    tint = (level * (1 + warmth), level, level * (1 - warmth))
    return Building(side, side * front, start, end, style, variant, tint, roof, bare)


def _gardens(seed: int, side: int, start: float, end: float, random: np.random.Generator) -> list[Thing]:
    """Three houses behind front gardens with a fence or a hedge and sometimes a tree."""
    things: list[Thing] = []
    plot = (end - start) / 3
    kinds = ("boards", "pickets", "railing", "hedge")
    for low in (start, start + plot, start + 2 * plot):
        variant, kind = int(random.integers(VARIANTS)), str(random.choice(kinds, p=(0.35, 0.25, 0.2, 0.2)))
        width = facade("house", variant).width
        begin = low + random.uniform(1.0, plot - width - 1.0)
        things.append(_building(random, side, FRONT_M + 5.5, begin, begin + width, "house", variant, bare=True))
        things += panels(kind, int(random.integers(3)), side * FRONT_M, low, low + plot - 1.3)
        if random.random() < 0.6:
            lateral = side * (FRONT_M + random.uniform(1.8, 3.4))
            things.append(_tree(seed, lateral, low + random.uniform(1, plot - 2), random, 0.75))
    return things


def _park(seed: int, side: int, start: float, end: float, random: np.random.Generator) -> list[Thing]:
    """Railings, and trees in three rows behind them."""
    things: list[Thing] = [*panels("railing", int(random.integers(3)), side * FRONT_M, start, end)]
    for row in (12.5, 19.0, 27.0):
        for station in np.arange(start + 3.0, end - 1.0, 7.5):
            place = side * (row + random.uniform(-1.5, 1.5))
            things.append(_tree(seed, place, float(station + random.uniform(-2, 2)), random, 1.15))
    return things


def _tree(seed: int, lateral: float, station: float, random: np.random.Generator, size: float = 1.0) -> Tree:
    species = str(random.choice(town(seed).species)) if random.random() < 0.75 else str(random.choice(list(SPECIES)))
    height = size * random.uniform(6.5, 9.0) * (0.75 if species == "young" else 1.0)
    level = random.uniform(0.88, 1.1)
    red, green, blue = town(seed).season
    tint = (level * red, level * green, level * blue)
    return Tree(species, int(random.integers(4)), lateral, station, height, tint)


def _kerbside(seed: int, index: int, side: int, random: np.random.Generator, crossing: float | None) -> list[Thing]:
    """Lamp posts or telegraph poles, trees, signs and bollards; beacons or lights and guard rails at a crossing."""
    start, common = index * BLOCK_M, town(seed)
    lamps = light_of(seed).mood.lamps
    things: list[Thing] = []
    for step in (14.0, 38.0):
        timber = not common.black_posts and side > 0
        shape = telegraph_pole() if timber else lamp_post(side, lamps, common.black_posts)
        things.append(Fixture(shape, side * VERGE_M, start + step, 7.6))
    if random.random() < common.leafy:
        for step in (19.5, 31.0, 43.5):
            things.append(_tree(seed, side * (VERGE_M + 0.35), start + step + random.uniform(-1.2, 1.2), random, 0.85))
    for step in (10.5, 25.5, 34.0):
        if random.random() < 0.62:
            name = str(random.choice(list(SIGNS)))
            offset = 1.4 if name in LARGE else 0.1
            things.append(Fixture(sign(name), side * (VERGE_M + offset), start + step + random.uniform(-1, 1), 3.0))
    if random.random() < 0.4:
        first = start + random.choice((15.5, 27.0, 40.0))
        things += [Fixture(bollard(), side * (KERB_M + 0.3), first + 1.6 * step, 1.0) for step in range(4)]
    if crossing is not None:
        things += _crossing_furniture(seed, index, side, crossing)
    return things


def _crossing_furniture(seed: int, index: int, side: int, crossing: float) -> list[Thing]:
    if generator("block", seed, index, 8).random() < 0.5:
        shape, height, offsets = traffic_light(), 3.5, (-2.4, 2.6)
    else:
        shape, height, offsets = beacon(light_of(seed).mood.lamps), 3.0, (-2.2, 2.2)
    things: list[Thing] = [Fixture(shape, side * VERGE_M, crossing + offset, height) for offset in offsets]
    for low, high in ((-5.9, -2.6), (2.8, 10.0)):
        things += panels("guard", 2, side * (KERB_M + 0.3), crossing + low, crossing + high)
    return things


def _parked(seed: int, index: int, side: int, random: np.random.Generator, crossing: float | None) -> list[Thing]:
    """Cars along the kerb, but not beside a crossing."""
    things: list[Thing] = []
    density = random.uniform(0.3, 0.8) if random.random() < 0.6 else 0.06
    for slot in np.arange(3.5, BLOCK_M, 6.2):
        station = index * BLOCK_M + float(slot) + random.uniform(-0.4, 0.4)
        name = str(random.choice(("hatchback", "saloon", "estate", "van"), p=(0.42, 0.28, 0.2, 0.1)))
        paint = pick(random, MODELS[name].paints)
        heading = -side if random.random() < 0.85 else side
        if random.random() < density and (crossing is None or abs(station - crossing) > 9.0):
            things.append(Vehicle(car_mesh(name, paint), name, side * (KERB_M - 1.05), station, heading))
    return things
