"""The procedural street as a source: a video with true labels that needs no camera, file or network."""

from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from app.source_info import SourceInfo, numbered_name
from core.frame import Frame
from seg.street import Street

STREET_FRAMES = 250


class StreetSource:
    """A finite drive down the street of that seed."""

    def __init__(self, seed: int = 0, frames: int = STREET_FRAMES) -> None:
        self.losses: Counter[str] = Counter()
        self._street = Street(seed=seed)
        self._frames = frames
        street = self._street
        self.info = SourceInfo(f"street:{seed}", street.width, street.height, street.fps, length=frames, live=False)

    def __iter__(self) -> Iterator[Frame]:
        return self._street.frames(self._frames, 0)

    def frame_name(self, index: int) -> str:
        return numbered_name(index)

    def stop(self) -> None:
        """Nothing to do: drawing one frame never waits."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
