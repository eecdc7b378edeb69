"""The procedural street as a source: a video with true labels that needs no camera, file or network."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self

from app.sources.source import SourceInfo, frame_name
from core.classes import CAMVID, ClassList
from core.frame import Frame
from seg.street.drive import Street

STREET_FRAMES = 250


class StreetSource:
    """A finite drive down the street of that seed, labelled where the reader's classes are the street's own."""

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

    def frame_name(self, index: int) -> str:
        return frame_name(index)

    def stop(self) -> None:
        """Nothing to do: drawing one frame never waits."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
