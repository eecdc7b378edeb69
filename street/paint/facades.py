"""Building fronts as textures, painted in metres: brick terraces, shops, offices, flats and houses."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from steadyseg.street.paint.camera import generator, pick
from steadyseg.street.paint.light import Color, read_triples, scaled
from steadyseg.street.paint.texture import Texture
from steadyseg.street.paint.wall import Wall

GROUND_FLOOR_M = 3.5
FLOOR_M = 3.0
BRICKS: tuple[Color, ...] = ((150, 86, 66), (172, 110, 82), (182, 152, 108), (128, 78, 64), (162, 132, 104))
RENDERS = read_triples("226 220 206, 232 214 178, 214 196 190, 196 208 204, 238 236 230, 206 178 146, 178 192 208")
SHOP_PAINTS = read_triples("32 62 52, 38 48 84, 120 28 34, 34 34 36, 196 150 44, 60 104 110, 148 70 40, 88 50 84")
SHOP_NAMES = (
    "BAKERY, CAFE ROMA, BOOKS, FLOWERS, PHARMACY, BARBER, THE CROWN, GROCER, BIKES, TAILOR, PIZZA, MUSIC, OPTICIAN, "
    "SHOES, HARDWARE, TEA ROOM, BUTCHER, TOYS"
).split(", ")


@dataclass(frozen=True, eq=False)
class Facade:
    """A front, and the properties of the building's other parts."""

    texture: Texture
    end: Texture
    """Texture of the walls at both ends."""
    width: float
    height: float
    wall: Color
    roof: str
    """flat, eaves (a slope that rises from the front) or gable (the front carries a triangle)."""


def _upper_floors(
    wall: Wall, floors: int, bays: int, frame: Color, panes: tuple[int, int], lintel: Color | None
) -> None:
    pitch = wall.width / bays
    width, height = min(1.15, 0.5 * pitch), 1.75
    for floor in range(1, floors):
        low = GROUND_FLOOR_M + (floor - 1) * FLOOR_M + 0.65
        tall = height * (1.0 if floor < 3 else 0.8)
        for bay in range(bays):
            left = (bay + 0.5) * pitch - width / 2
            if lintel is not None:
                wall.lintel(left, low + tall + 0.04, width, lintel)
            wall.window(left, low, width, tall, frame, panes)


def _shop(wall: Wall, left: float, right: float) -> None:
    """A shopfront: fascia with a name, display windows, door, perhaps an awning."""
    random = wall.random
    paint = np.array(pick(random, SHOP_PAINTS), float)
    ink: Color = (236, 226, 196) if paint.sum() < 360 else (40, 34, 30)
    wall.rect(left, 0.0, right, 3.3, paint * 0.85)
    wall.glass(left + 0.2, 0.6, right - 1.4, 2.55)
    for share in (0.33, 0.66):
        x = left + 0.2 + share * (right - left - 1.6)
        wall.rect(x - 0.04, 0.6, x + 0.04, 2.55, paint)
    for _ in range(7):  # goods in the window
        x, goods = random.uniform(left + 0.3, right - 1.9), random.uniform(60, 230, 3)
        wall.rect(x, 0.62, x + random.uniform(0.15, 0.4), 0.7 + random.uniform(0.2, 0.7), goods)
    wall.rect(right - 1.25, 0.1, right - 0.3, 2.5, paint * 0.6)
    wall.glass(right - 1.13, 0.5, right - 0.42, 2.3)
    wall.rect(left, 2.6, right, 3.3, paint)
    wall.scale(left, 2.6, right, 2.68, 0.6)
    wall.words(pick(random, SHOP_NAMES), left + 0.4, 2.76, right - 0.4, 3.16, ink)
    wall.rect(left - 0.05, 3.3, right + 0.05, 3.42, paint * 1.15 + 12)
    if random.random() < 0.45:
        cloth, x, odd = pick(random, SHOP_PAINTS), left + 0.1, False
        while x < right - 0.1:
            stripe = (236, 232, 222) if odd else cloth
            wall.rect(x, 2.15, min(x + 0.35, right - 0.1), 2.62, np.array(stripe) * 0.96)
            x, odd = x + 0.35, not odd
        wall.scale(left + 0.1, 1.75, right - 0.1, 2.15, 0.6)


def _terrace(wall: Wall, floors: int) -> tuple[Color, str]:
    brick, bays = pick(wall.random, BRICKS), max(round(wall.width / 2.4), 2)
    wall.bricks(0.0, wall.height, brick)
    stone: Color = (214, 206, 190)
    _upper_floors(wall, floors, bays, (236, 234, 228), (2, 2), stone)
    pitch, door = wall.width / bays, int(wall.random.integers(bays))
    for bay in range(bays):
        middle = (bay + 0.5) * pitch
        if bay == door:
            wall.door(middle - 0.5, 1.0, pick(wall.random, SHOP_PAINTS))
        else:
            wall.lintel(middle - 0.6, 2.7, 1.2, stone)
            wall.window(middle - 0.6, 0.9, 1.2, 1.75, (236, 234, 228), (2, 2))
    wall.band(wall.height - 0.3, wall.height, (188, 180, 166))
    return brick, "eaves"


def _high_street(wall: Wall, floors: int) -> tuple[Color, str]:
    plain = wall.random.random() < 0.6
    color = pick(wall.random, RENDERS if plain else BRICKS)
    (wall.render if plain else wall.bricks)(0.0, wall.height, color)
    trim: Color = (240, 238, 230)
    _upper_floors(wall, floors, max(round(wall.width / 2.6), 2), trim, (2, 3), trim if not plain else None)
    if wall.width > 9:
        _shop(wall, 0.15, wall.width / 2 - 0.1)
        _shop(wall, wall.width / 2 + 0.1, wall.width - 0.15)
    else:
        _shop(wall, 0.15, wall.width - 0.15)
    wall.band(wall.height - 0.4, wall.height, scaled(color, 0.92))
    return color, "flat" if wall.random.random() < 0.4 else "eaves"


def _office(wall: Wall, floors: int) -> tuple[Color, str]:
    tone = wall.random.uniform(0.75, 1.0)
    concrete = (196 * tone, 196 * tone, 192 * tone)
    wall.render(0.0, wall.height, concrete)
    mullions = max(round(wall.width / 1.4), 4)
    for floor in range(floors):
        low = 0.7 if floor == 0 else GROUND_FLOOR_M + (floor - 1) * FLOOR_M + 0.8
        for index in range(mullions):
            left = 0.3 + index * (wall.width - 0.6) / mullions
            right = left + (wall.width - 0.6) / mullions - 0.12
            wall.rect(left - 0.06, low - 0.06, right + 0.06, low + 1.96, (72, 76, 80))
            wall.glass(left, low, right, low + 1.9)
        wall.scale(0.0, low - 0.14, wall.width, low - 0.06, 0.8)
    wall.rect(wall.width / 2 - 1.2, 0.0, wall.width / 2 + 1.2, 2.7, (60, 64, 68))
    wall.glass(wall.width / 2 - 1.05, 0.08, wall.width / 2 + 1.05, 2.5)
    wall.band(wall.height - 0.35, wall.height, concrete)
    return concrete, "flat"


def _flats(wall: Wall, floors: int) -> tuple[Color, str]:
    color, bays = pick(wall.random, RENDERS), max(round(wall.width / 3.4), 2)
    wall.bricks(0.0, GROUND_FLOOR_M, pick(wall.random, BRICKS))
    wall.render(GROUND_FLOOR_M, wall.height, color)
    pitch = wall.width / bays
    for floor in range(floors):
        low = 0.9 if floor == 0 else GROUND_FLOOR_M + (floor - 1) * FLOOR_M + 0.3
        for bay in range(bays):
            left = (bay + 0.5) * pitch - 0.8
            if floor == 0:
                wall.window(left, low, 1.6, 1.5, (90, 92, 96), (2, 1))
                continue
            wall.window(left, low, 1.6, 2.15, (90, 92, 96), (2, 1))
            wall.rect(left - 0.4, low - 0.2, left + 2.0, low, (168, 166, 162))
            wall.scale(left - 0.4, low - 0.55, left + 2.0, low - 0.2, 0.72)
            for step in np.arange(left - 0.4, left + 2.0, 0.14):
                wall.rect(step, low, step + 0.04, low + 0.95, (60, 62, 66))
            wall.rect(left - 0.4, low + 0.92, left + 2.0, low + 1.0, (52, 54, 58))
    wall.door(wall.width / 2 - 0.55, 1.1, (70, 76, 84))
    wall.band(wall.height - 0.25, wall.height, (150, 148, 144))
    return color, "flat"


def _georgian(wall: Wall, floors: int) -> tuple[Color, str]:
    stone, bays = (206, 192, 164), max(round(wall.width / 2.5), 3)
    wall.render(0.0, wall.height, stone)
    for low in np.arange(0.0, GROUND_FLOOR_M, 0.42):  # rusticated base
        wall.scale(0.0, float(low), wall.width, float(low) + 0.05, 0.8)
    pitch = wall.width / bays
    _upper_floors(wall, floors, bays, (242, 240, 234), (3, 4), (222, 210, 184))
    for bay in range(bays):
        middle = (bay + 0.5) * pitch
        if bay == bays // 2:
            wall.door(middle - 0.55, 1.1, (28, 42, 66))
        else:
            wall.window(middle - 0.6, 0.95, 1.2, 1.9, (242, 240, 234), (3, 4))
    for x in (0.0, wall.width - 0.45):
        wall.rect(x, GROUND_FLOOR_M, x + 0.45, wall.height, (218, 206, 180))
        wall.scale(x + 0.38, GROUND_FLOOR_M, x + 0.45, wall.height, 0.82)
    wall.band(GROUND_FLOOR_M - 0.2, GROUND_FLOOR_M + 0.05, (222, 210, 184))
    wall.band(wall.height - 0.55, wall.height, (222, 210, 184))
    return stone, "flat"


def _house(wall: Wall, floors: int) -> tuple[Color, str]:
    brick, render = pick(wall.random, BRICKS), pick(wall.random, RENDERS)
    wall.bricks(0.0, wall.height, brick)
    wall.render(GROUND_FLOOR_M - 0.3, wall.height, render)
    white: Color = (240, 240, 236)
    pane = 0.3 * wall.width
    wall.rect(0.6, 0.0, 0.8 + pane, GROUND_FLOOR_M - 0.3, scaled(brick, 0.9))
    wall.window(0.7, 0.8, pane, 1.6, white, (3, 2))
    wall.window(wall.width - 0.7 - 0.8 * pane, 0.9, 0.8 * pane, 1.4, white, (2, 2))
    wall.door(wall.width / 2 - 0.5, 1.0, pick(wall.random, SHOP_PAINTS), 2.1)
    for share in (0.14, 0.62):
        wall.window(share * wall.width, GROUND_FLOOR_M + 0.55, 0.24 * wall.width, 1.4, white, (3, 2))
    return render, "gable" if wall.random.random() < 0.4 else "eaves"


STYLES: dict[str, tuple[Callable[[Wall, int], tuple[Color, str]], tuple[float, float], tuple[int, int]]] = {
    # painter, width range in metres, range of floors
    "terrace": (_terrace, (6.5, 10.0), (2, 4)),
    "high street": (_high_street, (6.5, 12.0), (2, 4)),
    "office": (_office, (10.0, 13.5), (3, 5)),
    "flats": (_flats, (10.0, 14.0), (3, 5)),
    "georgian": (_georgian, (8.0, 12.0), (3, 4)),
    "house": (_house, (8.0, 10.5), (2, 2)),
}
VARIANTS = 5


@lru_cache(maxsize=64)
def facade(style: str, variant: int) -> Facade:
    """A front of the set that all streets share; streets differ in the order, tint and light of fronts."""
    painter, widths, floors = STYLES[style]
    random = generator("texture", list(STYLES).index(style), variant)
    count = int(random.integers(floors[0], floors[1] + 1))
    height = GROUND_FLOOR_M + (count - 1) * FLOOR_M + 0.4
    wall = Wall(float(random.uniform(*widths)), height, random)
    color, roof = painter(wall, count)
    return Facade(Texture(wall.weathered()), _end_wall(height, count, color, random), wall.width, height, color, roof)


def _end_wall(height: float, floors: int, color: Color, random: np.random.Generator) -> Texture:
    """The texture of an end wall: nine metres deep, in the front's colour, with few windows."""
    wall = Wall(9.0, height, random)
    (wall.bricks if color in BRICKS else wall.render)(0.0, height, color)
    for floor in range(floors):
        for left in (1.6, 5.8):
            if random.random() < 0.4:
                wall.window(left, 1.0 + floor * FLOOR_M, 0.9, 1.3, (226, 224, 218), (2, 2))
    return Texture(wall.weathered())
