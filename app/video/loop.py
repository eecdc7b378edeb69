"""The loop from a stream to files: source, segmenter, picture, sink; for the command line and the page alike."""

import contextlib
from collections import deque
from collections.abc import Callable, Generator
from itertools import islice

import numpy as np

from app.sources.read_ahead import read_ahead
from app.sources.source import Source
from app.video.render import View, render
from app.video.report import StreamReport
from app.video.sinks import MaskWriter, NullSink, Sink
from core.frame import Frame, Maps
from core.segmenter import MAX_SAMPLES, Segmenter, segment
from core.system.interrupts import uninterrupted

Paint = Callable[[Frame, Maps], np.ndarray]
"""Draws the picture of one frame, (H, W, 3) uint8 RGB of the size that the sink expects."""


def process(
    source: Source,
    segmenter: Segmenter,
    sink: Sink,
    view: View | Paint,
    *,
    report: StreamReport | None = None,
    masks: MaskWriter | None = None,
    max_frames: int | None = None,
) -> Generator[Frame, None, None]:
    """Yields every frame after it was written and reported. Closing the generator, in whatever way, finishes the
    sink."""
    clock = segmenter.clock
    decode_ms: deque[float] = deque(maxlen=MAX_SAMPLES)
    clock.samples["decode"] = decode_ms
    with sink, contextlib.closing(read_ahead(source, decode_ms=decode_ms)) as frames:
        for frame, maps in segment(islice(frames, max_frames), segmenter):
            with uninterrupted():  # a frame is in the video, the masks and the report, or in none of them
                if not isinstance(sink, NullSink):
                    with clock.measure("render"):
                        picture = view(frame, maps) if callable(view) else render(frame, maps, view, segmenter.classes)
                    with clock.measure("encode"):
                        sink.write(picture, frame.time_s)
                if masks:
                    with clock.measure("masks"):
                        masks.write(maps, source.frame_name(frame.index))
                if report:
                    report.update(frame, maps)
            yield frame
