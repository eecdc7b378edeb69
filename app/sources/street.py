"""The procedural street as a source: a video with true labels that needs no camera, file or network."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from app.sources.source import Source, SourceInfo
from core.classes import CAMVID, ClassList
from core.frame import Frame
from seg.street.drive import Street

STREET_FRAMES = 250


class StreetSource(Source):
    """A finite drive down the street of one seed; labelled if the reader's classes are those of the street."""

    def __init__(self, seed: int = 0, frames: int = STREET_FRAMES, classes: ClassList = CAMVID) -> None:
        self.losses: Counter[str] = Counter()
        self._street = Street(seed=seed)
        self._frames = frames
        self._labelled = classes == CAMVID
        street, notes = self._street, () if self._labelled else ("the street's labels are CamVid's and are left away",)
        size = (street.width, street.height)
        self.info = SourceInfo(f"street:{seed}", *size, street.fps, length=frames, live=False, notes=notes)

    def __iter__(self) -> Iterator[Frame]:
        frames = self._street.frames(self._frames, 0)
        return frames if self._labelled else (replace(frame, label=None) for frame in frames)
