"""The way of a source through a segmenter into files: the one loop of `video`, `batch` and the page's File tab."""

import contextlib
from collections import deque
from collections.abc import Callable, Generator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from steadyseg.app.sources.read_ahead import read_ahead
from steadyseg.app.sources.source import Source
from steadyseg.app.video.report import FrameFigures, StreamReport
from steadyseg.app.video.sinks import Sink, WriteMasks
from steadyseg.app.video.stream_sink import StreamSink
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.core.stage_clock import MAX_TIMES
from steadyseg.core.system.interrupts import uninterrupted


class Recorded(NamedTuple):
    """A frame that was written and counted."""

    frame: Frame
    maps: Maps
    figures: FrameFigures


class Recording(contextlib.AbstractContextManager["Recording"]):
    """Iterate over it inside `with`: it yields every frame after the frame was written and counted. Leaving `with`
    finishes the files."""

    broken_off: InputError | OSError | KeyboardInterrupt | None = None
    """The reason why the work ended early, after frames whose output is complete."""

    def __init__(
        self,
        source: Source,
        segmenter: Segmenter,
        sink: Sink | None,
        paint: Callable[[Frame, Maps], np.ndarray],
        masks: WriteMasks | None = None,
        max_frames: int | None = None,
    ) -> None:
        """`paint` draws the picture of a frame, (H, W, 3) uint8 RGB, in the size that the sink expects."""
        self.source, self.segmenter, self.report = source, segmenter, StreamReport(segmenter.classes)
        self._sink, self._paint, self._masks = sink, paint, masks
        self._frames, self._unread = self._record(max_frames), iter(tuple[Frame]())

    def __iter__(self) -> Generator[Recorded, None, None]:
        return self._frames

    def __exit__(self, *_: object) -> None:
        self._frames.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes that the source and the sink make to pictures, in words."""
        return (*self.source.info.notes, *(self._sink.notes if self._sink else ()))

    def has_more(self) -> bool:
        """True if the source has a frame after `max_frames`. Call it at the last of them; a camera may need a while."""
        return next(self._unread, None) is not None

    def record(self) -> dict[str, Any]:
        """The report as JSON values."""
        return self.report.record(self.segmenter, self.source, self.notes)

    def _record(self, max_frames: int | None) -> Generator[Recorded, None, None]:
        decode_ms: deque[float] = deque(maxlen=MAX_TIMES)
        self.segmenter.clock.samples["decode"] = decode_ms
        with (
            self._sink or contextlib.nullcontext(),
            contextlib.closing(
                read_ahead(self.source, decode_ms=decode_ms, live=isinstance(self._sink, StreamSink))
            ) as self._unread,
        ):
            for frame, maps in segment(islice(self._unread, max_frames), self.segmenter):
                with uninterrupted():  # each frame is in the video, the masks and the report, or in none of the three
                    figures = self._write(frame, maps)
                yield Recorded(frame, maps, figures)

    def _write(self, frame: Frame, maps: Maps) -> FrameFigures:
        clock = self.segmenter.clock
        if self._sink:
            with clock.measure("render"):
                picture = self._paint(frame, maps)
            with clock.measure("encode"):
                self._sink.write(picture, frame.time_s)
        if self._masks:
            with clock.measure("masks"):
                self._masks(maps, self.source.frame_name(frame.index))
        return self.report.update(frame, maps)
