"""Everything that moves: streams of equal speed, so that positions follow from the time alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from steadyseg.street.layout import BLOCK_M, has_crossing
from steadyseg.street.paint.camera import FAR_M, LANE_M, ego_speed, ego_station, generator, pick
from steadyseg.street.paint.cars import MODELS, car_mesh
from steadyseg.street.paint.ground import KERB_M
from steadyseg.street.paint.light import Color, light_of
from steadyseg.street.paint.mesh import Mesh
from steadyseg.street.paint.people import COATS, Person, somebody
from steadyseg.street.things import Rider, Thing, Vehicle, Walker

DRIVEN = ("hatchback", "saloon", "estate", "van", "bus")


@dataclass(frozen=True)
class Stream:
    """Road users of equal speed, `pitch` metres apart, each displaced by less than `slack` pitches."""

    number: int
    lateral: float
    velocity: float
    """Metres a second along the street."""
    pitch: float
    slack: float
    share: float
    """Share of the places that are occupied."""


@dataclass(frozen=True)
class Member:
    """The random numbers of one member of a stream, the same for all time."""

    shift: float
    """Displacement of the member from its place, as a share of the pitch, 0..1."""
    there: float
    jitter: float
    """A number in -1..1 for the deviations of this member, such as of its lateral position."""
    phase: float
    person: Person
    companion: Person | None
    color: Color


ONCOMING = Stream(1, LANE_M, -8.5, 42.0, 0.6, 0.75)
WALKERS = (
    Stream(3, -KERB_M - 1.1, 1.3, 15.0, 0.8, 0.75),
    Stream(4, -KERB_M - 2.4, -1.15, 15.0, 0.8, 0.75),
    Stream(5, KERB_M + 1.1, 1.1, 15.0, 0.8, 0.75),
    Stream(6, KERB_M + 2.4, -1.35, 15.0, 0.8, 0.75),
    Stream(7, -KERB_M - 3.5, 0.0, 27.0, 0.8, 0.75),
    Stream(8, KERB_M + 3.5, 0.0, 27.0, 0.8, 0.75),
)


@lru_cache(maxsize=8192)
def _member(seed: int, number: int, index: int) -> Member:
    random = generator("traffic", seed, number, index)
    shift, there, phase = random.uniform(0, (1.0, 1.0, 2 * math.pi)).tolist()
    return Member(
        shift,
        there,
        float(random.uniform(-1, 1)),
        phase,
        somebody(random),
        companion=somebody(random) if random.random() < 0.3 else None,
        color=pick(random, COATS),
    )


def _members(seed: int, stream: Stream, time_s: float, here: float) -> Iterator[tuple[int, float, Member]]:
    """Index, station and random numbers of every member in sight."""
    drift = stream.velocity * time_s
    first, last = math.floor((here - drift) / stream.pitch) - 1, math.ceil((here + FAR_M - drift) / stream.pitch)
    for index in range(first, last + 1):
        member = _member(seed, stream.number, index)
        if member.there < stream.share:
            yield index, (index + stream.slack * member.shift) * stream.pitch + drift, member


def moving(seed: int, time_s: float) -> list[Thing]:
    """Cars, pedestrians and bicyclists that are in sight at `time_s`."""
    here = ego_station(seed, time_s)
    return [
        *_oncoming(seed, time_s, here),
        *_ahead(seed, time_s, here),
        *_walkers(seed, time_s, here),
        *_riders(seed, time_s, here),
        *_crossing_people(seed, time_s, here),
    ]


@lru_cache(maxsize=4096)
def _driven(seed: int, number: int, index: int) -> tuple[str, Mesh]:
    """Model and mesh of a car in traffic."""
    random = generator("traffic", seed, number, index, 1)
    name = str(random.choice(DRIVEN, p=(0.36, 0.28, 0.2, 0.1, 0.06)))
    lamps = light_of(seed).mood.lamps
    return name, car_mesh(name, pick(random, MODELS[name].paints), lamps, bool(random.random() < 0.3))


def _oncoming(seed: int, time_s: float, here: float) -> Iterator[Thing]:
    for index, station, member in _members(seed, ONCOMING, time_s, here):
        name, shape = _driven(seed, ONCOMING.number, index)
        yield Vehicle(shape, name, ONCOMING.lateral + 0.15 * member.jitter, station, -1)


def _ahead(seed: int, time_s: float, here: float) -> Iterator[Thing]:
    """Vehicles ahead in the ego car's lane, which keep their distance to it."""
    gap = 17.0 + 9.0 * _member(seed, 2, 99).shift
    for place in range(4):
        member = _member(seed, 2, place)
        name, shape = _driven(seed, 2, place)
        long = 4.0 if name == "bus" else 0.0
        distance = gap + long + place * 26.0 + 3.0 * math.sin(0.3 * time_s + member.phase)
        if member.there < 0.7:
            yield Vehicle(shape, name, -LANE_M + 0.15 * member.jitter, here + distance, 1)


def _walkers(seed: int, time_s: float, here: float) -> Iterator[Thing]:
    for stream in WALKERS:
        speed = abs(stream.velocity)
        for _, station, member in _members(seed, stream, time_s, here):
            lateral = stream.lateral + 0.15 * member.jitter
            if not speed:
                yield Walker(member.person, lateral, station, member.phase, 0.3)
                continue
            direction = 0.0 if stream.velocity > 0 else math.pi
            phase = member.phase + 2 * math.pi * time_s * speed / (0.85 * member.person.height)
            yield Walker(member.person, lateral, station, direction, phase)
            if member.companion is not None:
                beside = lateral + math.copysign(0.6, lateral) * (1 if abs(stream.lateral) < KERB_M + 2 else -1)
                yield Walker(member.companion, beside, station + 0.2, direction, phase + 1.0)


def _riders(seed: int, time_s: float, here: float) -> Iterator[Thing]:
    away = Stream(9, -3.2, 0.72 * ego_speed(seed), 21.0, 0.75, 0.8)
    towards = Stream(10, 3.25, -5.2, 26.0, 0.75, 0.8)
    for stream, heading in ((away, 1), (towards, -1)):
        for _, station, member in _members(seed, stream, time_s, here):
            lateral = stream.lateral + 0.1 * math.sin(1.7 * time_s + member.phase)
            yield Rider(member.person, member.color, lateral, station, heading, member.phase + 7.0 * time_s)


def _crossing_people(seed: int, time_s: float, here: float) -> Iterator[Thing]:
    """Pedestrians who finish crossing three to six seconds before the ego car arrives."""
    whole = 2 * KERB_M + 2.2
    for index in range(math.floor(here / BLOCK_M), math.ceil((here + FAR_M) / BLOCK_M) + 1):
        if not has_crossing(seed, index):
            continue
        station = index * BLOCK_M + 6.0
        for number in (11, 12, 13):
            member = _member(seed, number, index)
            side, pace = math.copysign(1.0, member.jitter), 1.1 + 0.4 * member.shift
            left_s = station / ego_speed(seed) - 3.2 - 3.3 * member.there - time_s
            walked = min(max(whole - left_s * pace, 0.0), whole)
            waits_or_walks = whole - left_s * pace < whole + 3.0
            if member.there < 0.75 and waits_or_walks:
                phase = member.phase + 2 * math.pi * walked / (0.85 * member.person.height)
                place, beside = side * (walked - KERB_M - 1.1), 2.4 * member.shift - 1.2
                yield Walker(member.person, place, station + beside, side * math.pi / 2, phase)
