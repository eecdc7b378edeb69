"""The pictures on which familiarity and the expected accuracy are fitted, unchanged and with changes.

Means and covariances are fitted without some blocks of neighbouring frames; the scale of familiarity is fitted on these
blocks. A further data folder gives its train pictures to the means, and every second picture of val to all else. None
of the changes is a corruption that the studies measure.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.classes import ClassList
from steadyseg.core.corruptions.camera_changes import random_camera
from steadyseg.core.corruptions.tuning import texture, with_changes
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.system.pictures import read_upright
from steadyseg.seg.data.held_out import recorded_names
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split

Place = tuple[ImageFolderSplit, int]
"""A picture of a split."""
Watch = Callable[[Iterable[Any], str], Iterable[Any]]
BLOCK, GAP = 20, 10
"""Frames of a held-out block, and unused frames on either side of it; CamVid's stills are a second apart."""
CHANGED = 16
"""Pictures of a data set that are also judged in changed forms, 20 each."""
MADE, MADE_ROWS = 12, 360
"""Made pictures of each kind, and their rows."""


@dataclass(frozen=True, eq=False)
class Also:
    """A further data folder that the network was trained on."""

    train: ImageFolderSplit
    val: ImageFolderSplit

    @classmethod
    def of(cls, folder: Path, classes: ClassList) -> "Also":
        """Opens the folder; InputError where it has no train or no val."""
        return cls(open_split(folder, "train", classes), open_split(folder, "val", classes))


@dataclass(frozen=True, eq=False)
class Frames:
    """The pictures that serve each purpose of the fit; indices are into the training images."""

    split: ImageFolderSplit
    fitted: tuple[int, ...]
    held_out: tuple[int, ...]
    """Frames of blocks, whose statistics set the scale of familiarity."""
    untrained: tuple[int, ...]
    """Frames outside the training. If the checkpoint does not record its training images: the held-out blocks."""
    note: str
    """States whether the network was trained on frames of the blocks; else empty."""
    also: tuple[Also, ...] = ()
    foreign: tuple[Path, ...] = ()
    """Pictures that the network is not for."""

    @classmethod
    def of(
        cls, split: ImageFolderSplit, meta: CheckpointMeta, also: tuple[Also, ...] = (), foreign: tuple[Path, ...] = ()
    ) -> "Frames":
        """Divides the training images; InputError for recordings too short for a block."""
        fitted, held_out = map(tuple, hold_out_blocks([example.name for example in split.examples]))
        names = set(recorded_names(meta.training))
        untrained = tuple(place for place, example in enumerate(split.examples) if example.name in names)
        if not untrained or len(untrained) < len(names):
            note = "the expected accuracy is fitted on them; the network may have learnt their pictures"
            return cls(split, fitted, held_out, held_out, note, also, foreign)
        trained = len(set(held_out) - set(untrained))
        note = f"{trained} of the {len(held_out)} frames of the blocks were trained on" if trained else ""
        without = tuple(sorted(set(fitted) - set(untrained)))
        return cls(split, without, held_out, untrained, note, also, foreign)

    @property
    def of_means(self) -> list[Place]:
        """Pictures of means and covariances; a further folder gives at most as many as the first."""
        return [(self.split, one) for one in self.fitted] + [
            (also.train, one) for also in self.also for one in spread(len(also.train), len(self.fitted))
        ]

    @property
    def of_scale(self) -> list[Place]:
        """Pictures of the scale of familiarity."""
        return [(self.split, one) for one in self.held_out] + [
            (also.val, one) for also in self.also for one in range(0, len(also.val), 2)
        ]

    def judged(self, watch: Watch) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
        """Yields (group, image, label) for the expected accuracy. A group is a data set, unchanged or changed, or the
        pictures that the network is not for, which have no label."""
        groups = [(self.split, list(self.untrained))]
        groups += [(also.val, list(range(0, len(also.val), 2))) for also in self.also]
        for split, places in groups:
            changed = {places[one] for one in spread(len(places), CHANGED)}
            for number, place in enumerate(watch(places, f"expected accuracy, {split.root.name}")):
                image, label = split[place]
                yield split.root.name, image, label
                for is_clean, worse in with_changes(image, number, place) if place in changed else ():
                    if not is_clean:
                        yield f"{split.root.name}, changed", worse, label
        for path in watch(self.foreign, "expected accuracy, other pictures"):
            yield "other pictures", read_upright(path), None
        for image in made_pictures():
            yield "made pictures", image, None


def spread(count: int, wanted: int) -> list[int]:
    """At most `wanted` places, spread evenly over `count`."""
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).astype(int)).tolist() if count else []


def made_pictures() -> Iterator[np.ndarray]:
    """Noise, single colours and textures: no camera shows such a street."""
    for seed in range(MADE):
        generator = np.random.default_rng([seed, 23])
        yield generator.integers(0, 256, (MADE_ROWS, MADE_ROWS * 4 // 3, 3), dtype=np.uint8)
        yield np.full((MADE_ROWS, MADE_ROWS * 4 // 3, 3), generator.integers(0, 256, 3), np.uint8)
        yield texture(MADE_ROWS, MADE_ROWS * 4 // 3, generator)


def with_cameras(pictures: Sequence[Place], watch: Watch, title: str, cameras: int = 1) -> Iterator[np.ndarray]:
    """Yields every picture unchanged, then as other cameras would give it."""
    for split, place in watch(pictures, title):
        image, _ = split[place]
        yield image
        for number in range(cameras):
            yield random_camera(image, np.random.default_rng([place, number]))


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
