"""Streams of the study of alarms: home, home through another camera, foreign places, and streets in other weather.

A stream is an iterator of pictures (H, W, 3) uint8 with the index of each at `HZ` frames a second, the rate of the
method.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, TUNING_CORRUPTIONS, corrupt
from steadyseg.seg.data.moving_stills import seed_of, still_clip
from steadyseg.seg.street.drive import LOOKS, StreetSet
from steadyseg.seg.street.drive import Street as Drive
from steadyseg.studies.novelty.samples import (
    CLIPS,
    CONTROLS,
    HEIGHT,
    WIDTH,
    Data,
    Sample,
    Samples,
    no_pictures,
    objects,
    of_split,
)

HZ = 15.0
A_SECOND, STEP = 2.5, 6
"""Frames a second of streams that are not looked at as a whole, and their step in frames of `HZ`."""
CLIP = 16
"""Frames of a clip: 6 s at `A_SECOND`."""
EVERY = 6
"""Stride over the stills where they are changed."""
Stream = Iterator[tuple[int, np.ndarray]]
Change = Callable[[np.ndarray], np.ndarray]
Streams = dict[str, Callable[[], Stream]]

STREET = (180, 240)
"""Height and width of the streets of street-tiny."""
CHOICE_DRIVES, REPORT_DRIVES = range(6000, 6006), range(7000, 7036)
"""Seeds of the drives that the alarm was chosen on, half an hour, and of those that are reported, 3 hours."""
DRIVE_SECONDS, DRIVE_HZ = 300, 0.5
CHANGED_SECONDS = 7


def camvid_streams(data: Data) -> Streams:
    """The streams of a network of CamVid by name, `KIND: WHICH`."""
    unchanged = {"unchanged": np.asarray}
    return {
        **{f"motorway: {clip}": partial(motorway, data, clip) for clip in CLIPS},
        **foreign_pictures(data),
        **{
            f"test stills: {name}": partial(stills, data, "test", change)
            for name, change in (unchanged | CONTROLS).items()
        },
        "held-out stills: unchanged": partial(stills, data, "train", np.asarray),
        "val: unchanged": partial(val, data, 1, np.asarray),
        **{f"val: {name}": partial(val, data, STEP, change) for name, change in CONTROLS.items()},
        **{f"corrupted val: {kind}": partial(corrupted_val, data, kind) for kind in BENCHMARK_CORRUPTIONS},
        **{f"street: {seed}": partial(drive, seed, (HEIGHT, WIDTH), 6, A_SECOND) for seed in REPORT_DRIVES[:5]},
    }


def street_streams(data: Data) -> Streams:
    """The streams of a network of the street."""
    streams: Streams = {}
    for part, kinds, changed, drives in (
        ("choice", TUNING_CORRUPTIONS, CHOICE_DRIVES[:3], CHOICE_DRIVES),
        ("report", BENCHMARK_CORRUPTIONS, REPORT_DRIVES[:2], REPORT_DRIVES),
    ):
        for seed, kind, severity in itertools.product(changed, kinds, (3, 5)):
            name = f"{part} street of severity {severity}: {kind} {seed}"
            streams[name] = partial(corrupted_street, seed, kind, severity)
        for seed in drives:
            streams[f"{part} drive: {seed}"] = partial(drive, seed, STREET, DRIVE_SECONDS, DRIVE_HZ)
        if part == "choice":
            streams |= {f"motorway: {clip}": partial(motorway, data, clip) for clip in CLIPS}
            streams["camvid: val"] = partial(val, data, STEP, np.asarray)
            streams |= foreign_pictures(data)
    return streams


def stills(data: Data, split: str, change: Change) -> Stream:
    """The stills of test, or those of train that trainings hold out, in order, one a second."""
    places = data.held_out if split == "train" else list(range(len(data.split(split))))
    places = places[:: 1 if change is np.asarray else EVERY]
    for number, (_, image, _) in enumerate(of_split(data, split, places)):
        yield round(number * HZ), change(image)


def val(data: Data, step: int, change: Change) -> Stream:
    places = list(range(0, len(data.split("val")), step))
    for place, (_, image, _) in zip(places, of_split(data, "val", places), strict=True):
        yield place, change(image)


def corrupted_val(data: Data, kind: str) -> Stream:
    for place, image in val(data, STEP, np.asarray):
        yield place, corrupt(image, kind, 3, 0, place)


def motorway(data: Data, clip: str) -> Stream:
    """A clip at `A_SECOND`; the one of 1.5 s is played forwards and backwards until 6 s are over."""
    with open_source(str(data.folder / "video" / CLIPS[clip])) as source:
        images = [frame.image for frame in source]
    there_and_back = [*range(len(images)), *range(len(images) - 2, 0, -1)]
    for number in range(max(CLIP, int(len(images) / 25 * A_SECOND))):
        yield STEP * number, images[there_and_back[int(number * 25 / A_SECOND) % len(there_and_back)]]


def drive(seed: int, size: tuple[int, int], seconds: float, a_second: float) -> Stream:
    for number in range(round(seconds * a_second)):
        time_s = number / a_second
        yield round(time_s * HZ), drawn(seed, size, time_s)


@lru_cache(maxsize=64)
def drawn(seed: int, size: tuple[int, int], time_s: float) -> np.ndarray:
    """A picture of a street, which several changes of it share."""
    street = Drive(seed=seed, height=size[0], width=size[1])
    return street.frame(round(time_s * street.fps)).image


def corrupted_street(seed: int, kind: str, severity: int) -> Stream:
    for index, image in drive(seed, STREET, CHANGED_SECONDS, 1):
        yield index, corrupt(image, kind, severity, seed, index)


def foreign_pictures(data: Data) -> Streams:
    """Cameras that move over photographs, and cameras before a screen."""
    return {
        **{f"{one.kind}: {one.name}": partial(moving, one) for one in photographs(data)},
        **{f"{one.kind}: {one.name}": partial(standing, one) for one in no_pictures(data)},
    }


def photographs(data: Data) -> Samples:
    """6 photographs, 6 small ones, and 6 of CIFAR-10."""
    for kind in ("photographs", "small photographs", "CIFAR-10 enlarged"):
        yield from itertools.islice((sample for sample in objects(data) if sample.kind == kind), 6)


def moving(still: Sample) -> Stream:
    """A camera that moves over a still: there and back, so that it does not come too near."""
    clip = [image for image, _ in still_clip(still.image, still.image[..., 0], 11, seed_of(still.name))]
    there_and_back = [*clip, *clip[-2:0:-1]]
    for number in range(CLIP):
        yield STEP * number, there_and_back[number % len(there_and_back)]


def standing(sample: Sample) -> Stream:
    for number in range(CLIP):
        yield STEP * number, sample.image


def street_domain() -> tuple[Iterator[np.ndarray], Iterator[np.ndarray]]:
    """Streets that a network's novelty is fitted on: 160 pictures of streets it was trained on, and one picture of each
    of 60 that it never saw, the reference."""
    trained = StreetSet(height=STREET[0], width=STREET[1])
    places = np.linspace(0, len(trained) - 5 * LOOKS - 1, 160).round().astype(int).tolist()
    unseen = (Drive(8000 + number, *STREET).frame(37 * (number % 50) + 1) for number in range(60))
    return (trained[place][0] for place in places), (frame.image for frame in unseen)


def trained_streets() -> Iterator[np.ndarray]:
    """60 other pictures of streets that the network was trained on."""
    trained = StreetSet(height=STREET[0], width=STREET[1])
    return (trained[place][0] for place in range(3, len(trained) - 5 * LOOKS, 18))
