"""Videos with sparse labels: all frames of a folder in order. A label has the name of its frame."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from steadyseg.core.cuts import MAX_GAP
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.preprocess import nearest
from steadyseg.core.system.file_names import PICTURE_SUFFIXES, Names
from steadyseg.core.system.pictures import has_suffix, read_upright
from steadyseg.seg.data.held_out import number_of, recording_of
from steadyseg.seg.data.label_folder import ImageFolderSplit, LabelledImage, name_of

SEQUENCE_FPS = 30.0
"""CamVid's recordings; the time of a frame is for display alone."""


@dataclass(frozen=True)
class SequenceFrames:
    """All frames of the videos in a folder, by recording and number, with the labels of a split."""

    folder: Path
    split: ImageFolderSplit
    paths: tuple[Path, ...]

    @property
    def names(self) -> list[str]:
        return [name_of(path) for path in self.paths]

    def frames(self) -> Iterator[Frame]:
        """Yields every frame, read when it is asked for. Numbers in the names are the time. Missing numbers are dropped
        frames; a new recording or a gap beyond `MAX_GAP` starts anew."""
        known = Names(self.names)
        labels = {name: example for example in self.split.examples for name in known.find(example.name)[:1]}
        before, index = ("", 0), 0
        for path in self.paths:
            name = name_of(path)
            now = (recording_of(name), number_of(name))
            gap = now[1] - before[1] if now[0] == before[0] else 0
            follows = 0 < gap <= MAX_GAP
            before, index = now, index + (gap if follows else 1)
            image, example = read_upright(path), labels.get(name)
            label = self._label(example, image.shape[:2]) if example else None
            yield Frame(image, index, index / SEQUENCE_FPS, label, discontinuity=not follows)

    def _label(self, example: LabelledImage, size: tuple[int, ...]) -> np.ndarray:
        """Returns the label at the frame's size, by nearest neighbour: CamVid's videos are often kept at half the size
        of its labels."""
        label = self.split.read(example.label, self.split.classes)
        if label.shape[0] * size[1] != label.shape[1] * size[0]:
            raise InputError(
                f"{example.label}: the label is {label.shape[1]}x{label.shape[0]}, its frame {size[1]}x{size[0]}; they "
                "must have one aspect"
            )
        return nearest(torch.from_numpy(label)[None], (size[0], size[1]))[0].numpy()


def open_sequence(folder: Path, split: ImageFolderSplit) -> SequenceFrames:
    """Finds the pictures below `folder`. Raises InputError where a label of the split has no frame there,
    because the metrics would otherwise leave it out unnoticed."""
    if not folder.is_dir():
        raise InputError(f"--sequence {folder}: no such folder; expected all frames of the videos as pictures")
    found = [path for path in folder.rglob("*") if has_suffix(path, PICTURE_SUFFIXES)]
    paths = sorted(found, key=lambda path: (recording_of(name_of(path)), number_of(name_of(path))))
    known = Names(map(name_of, paths))
    absent = sorted(example.name for example in split.examples if len(known.find(example.name)) != 1)
    if absent:
        raise InputError(
            f"--sequence {folder}: no frame {absent[0]}, which {split.split} has a label of ({len(absent)} of "
            f"{len(split)} are missing); name the labels that it has by --only LIST"
        )
    return SequenceFrames(folder, split, tuple(paths))
