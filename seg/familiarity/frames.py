"""The frames on which familiarity statistics are fitted, unchanged and with changes.

Means and covariances are fitted without some blocks of neighbouring frames; the scale of familiarity is fitted on these
blocks. None of the changes is a corruption that the studies measure.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyseg.core.corruptions.camera_changes import random_camera
from steadyseg.core.corruptions.tuning import with_changes
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.seg.data.held_out import recorded_names
from steadyseg.seg.data.label_folder import ImageFolderSplit

Labelled = tuple[np.ndarray, np.ndarray]
"""(H, W, 3) uint8 RGB, (H, W) uint8 class ids."""
Watch = Callable[[Iterable[Any], str], Iterable[Any]]
BLOCK, GAP = 20, 10
"""Frames of a held-out block, and unused frames on either side of it; CamVid's stills are a second apart."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Indices of the training images that serve each purpose of the fit."""

    split: ImageFolderSplit
    fitted: tuple[int, ...]
    held_out: tuple[int, ...]
    """Frames of blocks, whose statistics set the scale of familiarity."""
    untrained: tuple[int, ...]
    """Frames outside the training. If the checkpoint does not record its training images: the held-out blocks."""
    note: str
    """States whether the network was trained on frames of the blocks; else empty."""

    @classmethod
    def of(cls, split: ImageFolderSplit, meta: CheckpointMeta) -> "Frames":
        """Divides the training images; InputError for recordings too short for a block."""
        fitted, held_out = map(tuple, hold_out_blocks([example.name for example in split.examples]))
        names = set(recorded_names(meta.training))
        untrained = tuple(place for place, example in enumerate(split.examples) if example.name in names)
        if not untrained or len(untrained) < len(names):
            note = "the temperature of novel frames is fitted on them; the network may have learnt their pictures"
            return cls(split, fitted, held_out, held_out, note)
        trained = len(set(held_out) - set(untrained))
        note = f"{trained} of the {len(held_out)} frames of the blocks were trained on" if trained else ""
        return cls(split, tuple(sorted(set(fitted) - set(untrained))), held_out, untrained, note)


def with_cameras(
    frames: Frames, places: tuple[int, ...], watch: Watch, title: str, cameras: int = 1
) -> Iterator[Labelled]:
    """Yields every frame unchanged, then as other cameras would give it."""
    for place in watch(places, title):
        image, label = frames.split[place]
        yield image, label
        for number in range(cameras):
            yield random_camera(image, np.random.default_rng([place, number])), label


def tuning_pictures(frames: Frames, watch: Watch) -> Iterator[tuple[bool, np.ndarray, np.ndarray]]:
    """(unchanged, image, label): each untrained frame, then the same under every change."""
    for number, place in enumerate(watch(frames.untrained, "temperature of a frame")):
        image, label = frames.split[place]
        for is_clean, changed in with_changes(image, number, place):
            yield is_clean, changed, label


def hold_out_blocks(names: Sequence[str], block: int = BLOCK, gap: int = GAP) -> tuple[list[int], list[int]]:
    """Returns (fitted, held out) indices into `names`.

    The middle `block` frames of every recording are held out; the fit gets all frames but them and `gap` frames on both
    sides. The recording is the part of a name before the first "_": CamVid's 0001TP_008550 is of 0001TP. InputError
    where a recording is too short to leave as many frames as a block has.
    """
    recordings: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        recordings.setdefault(name.split("_")[0], []).append(place)
    fitted: list[int] = []
    held_out: list[int] = []
    for recording, places in recordings.items():
        if len(places) < 2 * block + 2 * gap:
            raise InputError(
                f"recording {recording} has {len(places)} frames; a block of {block} with gaps of {gap} needs "
                f"{2 * block + 2 * gap}"
            )
        start = (len(places) - block) // 2
        held_out += places[start : start + block]
        fitted += places[: start - gap] + places[start + block + gap :]
    return fitted, held_out
