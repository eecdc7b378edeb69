"""Pedestrians and bicyclists: jointed figures whose limbs follow the walking or pedalling phase."""

import math
from dataclasses import dataclass

import numpy as np

from steadyseg.street.paint.camera import pick
from steadyseg.street.paint.canvas import BICYCLIST, PEDESTRIAN, Canvas, Limb
from steadyseg.street.paint.light import Color, read_triples, scaled

SKINS: tuple[Color, ...] = ((226, 182, 152), (198, 148, 116), (148, 100, 74), (104, 70, 52), (238, 200, 172))
HAIRS: tuple[Color, ...] = ((44, 32, 26), (92, 62, 38), (176, 140, 84), (150, 150, 150), (24, 22, 22))
COATS = read_triples(
    "46 52 68, 150 40 44, 36 92 96, 186 150 60, 92 96 102, 208 206 200, 62 84 140, 120 66 110, 74 98 60, 214 110 50, "
    "34 34 38"
)
TROUSERS: tuple[Color, ...] = ((40, 46, 66), (62, 62, 66), (112, 98, 80), (28, 28, 32), (78, 92, 120), (132, 128, 122))
HEIGHTS_M = (1.15, 1.62, 1.68, 1.75, 1.82, 1.88)
RUBBER: Color = (28, 28, 30)
STEEL: Color = (120, 122, 124)


@dataclass(frozen=True)
class Person:
    """The appearance of one pedestrian or cyclist."""

    height: float
    skin: Color
    hair: Color
    coat: Color
    trousers: Color
    long_coat: bool
    bag: bool


def somebody(random: np.random.Generator) -> Person:
    return Person(
        height=pick(random, HEIGHTS_M),
        skin=pick(random, SKINS),
        hair=pick(random, HAIRS),
        coat=pick(random, COATS),
        trousers=pick(random, TROUSERS),
        long_coat=bool(random.random() < 0.3),
        bag=bool(random.random() < 0.35),
    )


@dataclass(frozen=True)
class Stance:
    """A place on the ground with a direction of travel: turns (across, up, along) into world points."""

    lateral: float
    station: float
    direction: float
    """Radians: 0 away from the camera, pi towards it, pi / 2 to the right."""

    def draw(self, canvas: Canvas, limbs: list[Limb], label: int) -> None:
        sine, cosine = math.sin(self.direction), math.cos(self.direction)
        local = np.array([point for limb in limbs for point in limb.points])
        sides = np.array(((cosine, 0.0, -sine), (0.0, 1.0, 0.0), (sine, 0.0, cosine)))
        world = local @ sides + np.array((self.lateral, 0.0, self.station))
        canvas.limbs(limbs, world, self.station, label)

    def near_side(self, canvas: Canvas) -> int:
        """The side of the body that is turned to the camera: 1 or -1."""
        right = math.cos(self.direction) * (canvas.camera.lateral - self.lateral)
        return 1 if right - math.sin(self.direction) * (canvas.camera.station - self.station) > 0 else -1


def draw_pedestrian(canvas: Canvas, person: Person, stance: Stance, phase: float) -> None:
    """Draws a pedestrian. `phase` is in radians, a full turn for two steps, and constant for somebody who stands."""
    swing, h, near = math.sin(phase), person.height, stance.near_side(canvas)
    faces_camera = math.cos(stance.direction) < 0.7
    limbs = _arm(person, -near, swing * near, 0.78) + _leg(person, -near, swing * -near, 0.78)
    limbs += _leg(person, near, swing * near, 1.0)
    limbs += _trunk(person) + _head(person, faces_camera)
    if person.bag:
        limbs.append(Limb(((near * 0.17 * h, 0.42 * h, 0), (near * 0.17 * h, 0.5 * h, 0)), 0.12 * h, (86, 58, 42)))
    stance.draw(canvas, limbs + _arm(person, near, swing * -near, 1.0), PEDESTRIAN)


def _leg(person: Person, side: int, swing: float, gain: float) -> list[Limb]:
    h, right = person.height, side * 0.05 * person.height
    lift = max(-swing, 0.0) * 0.12 * h
    knee = (right, 0.27 * h + 0.4 * lift, (0.12 * swing + 0.02) * h)
    foot = (right, 0.045 * h + lift, swing * 0.24 * h)
    toe = (right, foot[1] - 0.02 * h, foot[2] + 0.08 * h)
    color = scaled(person.trousers, gain)
    hip = (right, 0.5 * h, 0.0)
    return [
        Limb((foot, toe), 0.05 * h, (34, 30, 30)),
        Limb((hip, knee), 0.095 * h, color),
        Limb((knee, foot), 0.075 * h, color),
    ]


def _arm(person: Person, side: int, swing: float, gain: float) -> list[Limb]:
    h = person.height
    elbow = (side * 0.145 * h, 0.62 * h, 0.07 * swing * h)
    hand = (side * 0.14 * h, 0.48 * h, (swing * 0.18 + 0.05) * h)
    sleeve = Limb(((side * 0.125 * h, 0.79 * h, 0.0), elbow, hand), 0.06 * h, scaled(person.coat, gain))
    return [sleeve, Limb((hand,), 0.052 * h, person.skin)]


def _trunk(person: Person) -> list[Limb]:
    h, coat = person.height, person.coat
    hem = 0.36 if person.long_coat else 0.52
    return [
        Limb(((0, hem * h, 0), (0, 0.66 * h, 0)), 0.19 * h, scaled(coat, 0.9)),
        Limb(((-0.06 * h, 0.66 * h, 0), (0.06 * h, 0.66 * h, 0)), 0.15 * h, coat),
        Limb(((-0.07 * h, 0.76 * h, 0), (0.07 * h, 0.76 * h, 0)), 0.13 * h, scaled(coat, 1.07)),
    ]


def _head(person: Person, faces_camera: bool) -> list[Limb]:
    h = person.height
    limbs = [
        Limb(((0, 0.82 * h, 0), (0, 0.88 * h, 0.005)), 0.06 * h, person.skin),
        Limb(((0, 0.937 * h, -0.012 * h),), 0.13 * h, person.hair),
    ]
    return [*limbs, Limb(((0, 0.92 * h, 0.02 * h),), 0.104 * h, person.skin)] if faces_camera else limbs


def draw_bicyclist(canvas: Canvas, person: Person, stance: Stance, phase: float, paint: Color) -> None:
    """Draws a rider on a bicycle; `phase` is the angle of the cranks in radians."""
    near, grown = stance.near_side(canvas), max(person.height, 1.62)
    limbs = _bicycle(paint) + _rider_side(person, grown, -near, phase, 0.75)
    limbs += _rider_side(person, grown, near, phase, 1.0)
    stance.draw(canvas, limbs + _rider_body(person, grown, paint), BICYCLIST)


def _wheel(along: float) -> list[Limb]:
    angles = np.linspace(0, 2 * np.pi, 18, endpoint=False).tolist()
    rim = tuple((0.0, 0.34 + 0.33 * math.sin(a), along + 0.33 * math.cos(a)) for a in angles)
    spokes = [Limb((rim[3 * start], rim[3 * start + 9]), 0.01, STEEL) for start in range(3)]
    return [Limb(rim, 0.045, RUBBER, closed=True), *spokes]


def _bicycle(paint: Color) -> list[Limb]:
    seat, crank, head, bars = (0.0, 0.92, -0.2), (0.0, 0.3, -0.04), (0.0, 0.82, 0.38), (0.0, 1.02, 0.36)
    back, front = (0.0, 0.34, -0.52), (0.0, 0.34, 0.52)
    tubes = [
        Limb(tube, 0.05, paint) for tube in ((crank, seat), (crank, head), (seat, head), (crank, back), (head, front))
    ]
    handle = Limb(((-0.26, 1.04, 0.34), (0.26, 1.04, 0.34)), 0.04, RUBBER)
    return [*_wheel(-0.52), *_wheel(0.52), *tubes, handle, Limb((head, bars), 0.04, STEEL)]


def _rider_side(person: Person, height: float, side: int, phase: float, gain: float) -> list[Limb]:
    """The limbs of one side: a leg on its pedal and an arm on the handlebar."""
    turn = phase if side > 0 else phase + math.pi
    pedal = (side * 0.11, 0.3 + 0.17 * math.sin(turn), -0.04 + 0.17 * math.cos(turn))
    knee = (side * 0.12, 0.5 * (pedal[1] + 1.0) + 0.08, 0.2 + 0.06 * math.cos(turn))
    foot = (pedal[0], pedal[1] - 0.02, pedal[2] + 0.14)
    shoulder, hand = (side * 0.17, 0.96 + 0.27 * height, 0.1), (side * 0.24, 1.06, 0.34)
    elbow = (side * 0.26, 0.5 * (shoulder[1] + hand[1]) - 0.04, 0.22)
    trousers = scaled(person.trousers, gain)
    return [
        Limb((pedal, foot), 0.08, (230, 230, 228)),
        Limb(((side * 0.09, 0.98, -0.18), knee), 0.16, trousers),
        Limb((knee, pedal), 0.11, trousers),
        Limb((shoulder, elbow, hand), 0.1, scaled(person.coat, gain)),
    ]


def _rider_body(person: Person, height: float, paint: Color) -> list[Limb]:
    up = 0.98 + 0.27 * height
    return [
        Limb(((0.0, 1.0, -0.18), (0.0, up, 0.1)), 0.3, scaled(person.coat, 0.92)),
        Limb(((-0.14, up - 0.06, 0.08), (0.14, up - 0.06, 0.08)), 0.22, person.coat),
        Limb(((0.0, up, 0.1), (0.0, up + 0.2, 0.16)), 0.1, person.skin),
        Limb(((0.0, up + 0.2, 0.16),), 0.23, person.skin),
        Limb(((0.0, up + 0.25, 0.14),), 0.25, paint if person.bag else person.hair),
    ]
