"""The clip that the page can play without a camera: ten seconds of the procedural street."""

from pathlib import Path

from app.video.video_writer import VideoSink
from seg.street.drive import Street

SEED, SECONDS, FPS = 7, 10, 15


def write_sample(path: Path, height: int, width: int) -> None:
    """An H.264 file with frames of the network's size."""
    street = Street(seed=SEED, height=height, width=width, fps=FPS)
    with VideoSink(path, width, height, FPS) as sink:
        for frame in street.frames(SECONDS * FPS):
            sink.write(frame.image, frame.time_s)
