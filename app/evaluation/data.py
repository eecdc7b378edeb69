"""Labelled frames as the commands name them: a data folder or the street, a split, a protocol, a list."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.classes import CAMVID
from core.errors import InputError
from core.frame import Frame
from core.method import is_temporal
from core.segmenter import Executor, Segmenter
from seg.data.camvid import open_split, read_names
from seg.data.moving_stills import CLIP_FRAMES, moving_stills
from seg.evaluate import mark_stills

STREET_FRAMES = 100


@dataclass(frozen=True)
class EvaluationFrames:
    """Labelled frames with their names; `frames` can be iterated once."""

    names: list[str]
    frame_hash: str
    frames: Iterator[Frame]
    count: int
    """Number of frames; for moving stills there are more frames than names."""

    def sequence(self, place: int) -> str:
        """The recording that the place-th frame is from, by its name: CamVid's 0001TP_008550 is of 0001TP."""
        return self.names[place * len(self.names) // self.count].split("_")[0]


@dataclass(frozen=True)
class LabelledData:
    """The flags that choose labelled frames."""

    data: Path
    split: str
    protocol: str
    frames: Path | None

    def open(self, segmenter: Segmenter | Executor) -> EvaluationFrames:
        """Finds the files; InputError for what is missing or does not fit the network."""
        if str(self.data) == "street":
            from seg.street.drive import Street

            if segmenter.classes != CAMVID:
                raise InputError("the street is labelled with CamVid's 11 classes and this model has others")
            if self.frames:
                raise InputError("--only names images of a data folder; the street has none")
            if self.protocol == "moving-stills":
                raise InputError("--protocol moving-stills moves photographs; the street moves by itself: use stream")
            street = Street(seed=0, height=segmenter.size[0], width=segmenter.size[1])
            names = [f"street_0_{index:06d}" for index in range(STREET_FRAMES)]
            frames = street.frames(STREET_FRAMES)
            if self.protocol == "stills":
                frames = mark_stills(frames)
            frame_hash = f"street_0_{street.width}x{street.height}_{STREET_FRAMES}"
            return EvaluationFrames(names, frame_hash, frames, STREET_FRAMES)
        split = open_split(self.data, self.split, segmenter.classes)
        if self.frames:
            split = split.subset(read_names(self.frames))
        names = [example.name for example in split.examples]
        if self.protocol == "moving-stills":
            return EvaluationFrames(names, split.frame_hash, moving_stills(split), len(split) * CLIP_FRAMES)
        frames = split.frames()
        frames = mark_stills(frames) if self.protocol == "stills" else frames
        return EvaluationFrames(names, split.frame_hash, frames, len(split))


def refuse_memory(mode: str) -> None:
    """Stills have no frames before them."""
    if is_temporal(mode):
        raise InputError(
            f"mode {mode} averages over earlier frames and stills have none; use --protocol stream or "
            f"--mode {mode.removeprefix('vq-')}"
        )
