"""The one loop over a stream: command line, page, evaluation and tests iterate this generator."""

from collections.abc import Iterable, Iterator

from core.frame import Frame, Maps
from core.segmenter import Segmenter


def segment(frames: Iterable[Frame], segmenter: Segmenter) -> Iterator[tuple[Frame, Maps]]:
    """Yields every frame with its maps. The caller owns pace, display and cancellation.

    Closing this generator closes `frames` where that is a generator too, so a reader thread behind it is freed.
    """
    try:
        for frame in frames:
            yield frame, segmenter.step(frame)
    finally:
        close = getattr(frames, "close", None)
        if close is not None:
            close()
