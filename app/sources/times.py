"""Times of pictures: from the stamps of a stream, which may be missing, run backwards or be decoding times."""

import math
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

HELD = 32
"""Packets after which a packet without a picture counts as lost: encoders hold back 16 pictures at most."""


class DisplayTimes:
    """Display times of H.264 and HEVC in AVI and ASF, which hold decoding times alone; FFmpeg takes these for display
    times.

    Pictures leave the decoder in the order of display, so they take the times of the packets in rising order.
    """

    def __init__(self, container: "InputContainer", stream: "VideoStream") -> None:
        self._wrong = container.format.name in ("avi", "asf") and stream.codec_context.name in ("h264", "hevc")
        self._times, self._waiting, self._packets = deque[int](), dict[int, int](), 0

    def add(self, packet: "Packet[Any]") -> None:
        """Takes the time of a packet before it is decoded."""
        if self._wrong and packet.pts is not None:
            self._packets += 1
            self._times.append(packet.pts)
            self._waiting[packet.pts] = self._packets

    def give(self, frame: "VideoFrame") -> None:
        """Gives a picture its display time instead of its packet's time."""
        number = self._waiting.pop(frame.pts, None) if frame.pts is not None else None
        if number is None:
            return
        frame.pts = self._times.popleft()
        while self._waiting and number - next(iter(self._waiting.values())) > HELD:
            del self._waiting[next(iter(self._waiting))]
            self._times.popleft()


def stamp_s(frame: "VideoFrame") -> float | None:
    """The frame's own presentation time in seconds, or None."""
    if frame.pts is None or frame.time_base is None:
        return None
    return float(frame.pts * frame.time_base)


FARTHEST_S = 366 * 86_400.0
"""Longest plausible time between two frames in seconds: Matroska can hold stamps of nine million years."""


class FrameClock:
    """A stream's time stamps, which may be missing or run backwards, as rising seconds from the start.

    Call it once per frame; corrected stamps are counted under "mended_time".
    """

    def __init__(self, step_s: float, losses: Counter[str]) -> None:
        self._step_s = step_s
        self._losses = losses
        self._time_s = -step_s
        self._stamp_s: float | None = None
        self._offset_s: float | None = None

    def __call__(self, stamp_s: float | None) -> float:
        """Seconds from the first frame; a missing, non-finite, backward or far stamp becomes previous + one frame."""
        if stamp_s is None or not math.isfinite(stamp_s):
            return self._mend()
        if self._offset_s is None:
            self._offset_s = self._time_s + self._step_s - stamp_s
        rising = self._stamp_s is not None and stamp_s > self._stamp_s
        self._stamp_s = stamp_s
        if self._time_s < stamp_s + self._offset_s <= self._time_s + FARTHEST_S:
            self._time_s = stamp_s + self._offset_s
            return self._time_s
        if rising:  # follows stamps that restarted in the past (this is the second frame there) or far away
            self._offset_s = self._time_s + self._step_s - stamp_s
        return self._mend()

    def restart(self, time_s: float) -> None:
        """Restarts the stamps; the next frame is at `time_s`, and later than the previous one in any case."""
        self._time_s = max(self._time_s, time_s - self._step_s)
        self._offset_s = self._stamp_s = None

    def _mend(self) -> float:
        self._losses["mended_time"] += 1
        self._time_s += self._step_s
        return self._time_s
