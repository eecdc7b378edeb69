"""Where a stream breaks: dropped frames widen the gap; a marked break, a step back or another size starts anew."""

from collections import Counter

from core.frame import Frame


class Continuity:
    """Watches the frames of one stream; every executor asks it before it touches its state."""

    def __init__(self) -> None:
        self.resets: Counter[str] = Counter()
        """How often the stream broke, by cause."""
        self.forget()

    def forget(self) -> None:
        """The next frame is the first of a stream."""
        self._size: tuple[int, ...] | None = None
        self._index = -1

    def follow(self, frame: Frame) -> int:
        """Source frames since the previous one (1: none was dropped), or 0 where this frame starts anew."""
        size, index = self._size, self._index
        self._size, self._index = frame.image.shape, frame.index
        if size is None:
            return 0
        if frame.discontinuity or frame.index <= index:
            self.resets["discontinuity"] += 1
            return 0
        if frame.image.shape != size:
            self.resets["size_change"] += 1
            return 0
        return frame.index - index
