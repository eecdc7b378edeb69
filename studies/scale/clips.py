"""Many short clips, all different: windows of the procedural street and of two motorway drives."""

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.app.video.video_writer import VideoSink

DRIVES = ("street:7:250", "udacity_solidWhiteRight.mp4", "udacity_vehicle_test_video.mp4")
FRAMES, WIDTH, HEIGHT = 24, 480, 270
"""Size of a clip: one second, at half the motorway clips' size."""


def make_clips(folder: Path, count: int, video: Path) -> Path:
    """FOLDER/clip0000.mp4, ...; those that are there already stay. `video`: the folder of the motorway drives."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [number for number in range(count) if not (folder / f"clip{number:04}.mp4").exists()]
    if not missing:
        return folder
    drives = [list(_frames(name if name.startswith("street") else str(video / name))) for name in DRIVES]
    for number in missing:
        drive = drives[number % len(drives)]
        # Windows of a drive begin at different frames, and every second time around they are mirrored.
        turn, place = divmod(number // len(drives), len(drive) - FRAMES)
        with VideoSink(folder / f"clip{number:04}.mp4", WIDTH, HEIGHT, 25.0) as sink:
            for index in range(FRAMES):
                image = drive[place + index]
                sink.write(np.ascontiguousarray(image[:, ::-1]) if turn % 2 else image, index / 25)
    return folder


def _frames(source: str) -> Iterator[np.ndarray]:
    """(HEIGHT, WIDTH, 3) uint8 RGB."""
    with open_source(source) as frames:
        for frame in frames:
            yield cv2.resize(frame.image, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
