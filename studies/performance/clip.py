"""The video of a bench: a street written as H.264 on the spot, or the user's file, and the jobs that read it whole."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path

import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.read_ahead import read_ahead
from steadyseg.app.video.recording import Recording
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.app.video.views import Painter
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.runtime.kernels.resize import resize_frame
from steadyseg.street.drive import Street

CLIP_FRAMES = 150
"""6 s at 25 Hz: opening and closing are less than 1 % of it at 30 frames/s. Of a longer file the first 150 are used."""
DRAWN = 50
"""Frames of the street that are drawn (0.2 s each at 480x360 on one core); the clip drives them forth, back and
forth."""
KEPT = 30
"""Frames that the rows without a file go round in: 16 MB at 480x360."""


@dataclass(frozen=True)
class Clip:
    """A file and what is in it."""

    path: Path
    name: str
    """For the report."""
    height: int
    """Pixels of its frames."""
    width: int
    frames: int
    """At most `CLIP_FRAMES`."""
    fps: float
    start: list[np.ndarray] = field(repr=False)
    """The first frames, (H, W, 3) uint8 RGB."""

    def drive(self, size: tuple[int, int]) -> Iterator[Frame]:
        """An endless stream without a break: the first frames over and over, at the network's (h, w)."""
        pictures = [resize_frame(image, size)[0] for image in self.start]
        return (Frame(pictures[index % len(pictures)], index, index / self.fps) for index in count())

    def to_labels(self, segmenter: Segmenter, frames: int) -> None:
        """The file through the segmenter to maps, as `steadyseg video` does, without a picture or a file coming out."""
        segmenter.reset()
        with open_source(str(self.path)) as source, contextlib.closing(read_ahead(source)) as shown:
            self._check(sum(1 for _ in segment(islice(shown, frames), segmenter)), frames)

    def to_video(self, segmenter: Segmenter, frames: int, output: Path) -> None:
        """The file through the segmenter to an encoded file, picture and uncertainty side by side."""
        segmenter.reset()
        with open_source(str(self.path)) as source:
            paint = Painter("side-by-side", segmenter.classes)
            size = paint.size(source.info.width, source.info.height)
            sink = VideoSink(output, *size, source.info.fps, overwrite=True)
            with Recording(source, segmenter, sink, paint, max_frames=frames) as recording:
                self._check(sum(1 for _ in recording), frames)

    def _check(self, done: int, frames: int) -> None:
        if done != frames:
            raise InputError(
                f"{self.name}: {done} of {frames} frames could be read; it must not change during the bench"
            )


def open_clip(path: Path, name: str) -> Clip:
    """Looks at a video file. InputError for whatever is none."""
    if not path.is_file():
        raise InputError(f"--source {name}: no such video file; omit --source for a clip made on the spot")
    with open_source(str(path)) as source:
        start: list[np.ndarray] = []
        frames = 0
        for frame in islice(source, CLIP_FRAMES):
            frames += 1
            if len(start) < KEPT:
                start.append(frame.image)
    if not frames:
        raise InputError(f"--source {name}: no frame could be read; give a whole video file")
    height, width = start[0].shape[:2]
    return Clip(path, name, height, width, frames, source.info.fps, start)


def street_clip(folder: Path, size: tuple[int, int]) -> Clip:
    """Writes the procedural street as H.264, its frames of the network's (h, w)."""
    street = Street(height=size[0], width=size[1])
    path = folder / "street.mp4"
    pictures = [frame.image for frame in street.frames(min(DRAWN, CLIP_FRAMES))]
    there_and_back = cycle(pictures + pictures[-2:0:-1])
    with VideoSink(path, street.width, street.height, street.fps) as sink:
        for index, picture in enumerate(islice(there_and_back, CLIP_FRAMES)):
            sink.write(picture, index / street.fps)
    return open_clip(path, "the procedural street")
