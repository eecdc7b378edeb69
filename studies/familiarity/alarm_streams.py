"""Streams of the study of alarms: home, home through another camera or in other weather, and foreign places.

A stream is an iterator of pictures (H, W, 3) uint8 with the index of each at `HZ` frames a second, the rate of the
method.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, corrupt
from steadyseg.seg.data.moving_stills import seed_of, still_clip
from steadyseg.street.drive import Street
from steadyseg.studies.familiarity.samples import (
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

DRIVES = range(7000, 7005)
"""Seeds of the drives down a street."""


def streams(data: Data) -> Streams:
    """The streams by name, `KIND: WHICH`."""
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
        **{f"street: {seed}": partial(drive, seed) for seed in DRIVES},
    }


def stills(data: Data, split: str, change: Change) -> Stream:
    """The test stills, or the train stills that trainings hold out, in order, one a second."""
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


def drive(seed: int) -> Stream:
    street = Street(seed=seed, height=HEIGHT, width=WIDTH)
    for number in range(round(6 * A_SECOND)):
        time_s = number / A_SECOND
        yield round(time_s * HZ), street.frame(round(time_s * street.fps)).image


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
