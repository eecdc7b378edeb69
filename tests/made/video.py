"""Small real videos for the tests, encoded by FFmpeg."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

TIME_BASE = Fraction(1, 90_000)


def grey_frames(count: int, height: int = 48, width: int = 64) -> list[np.ndarray]:
    """Frame i is one grey, 4 levels brighter than the frame before: its mean gives its number."""
    return [np.full((height, width, 3), 20 + 4 * (index % 50), np.uint8) for index in range(count)]


def quarters(height: int = 48, width: int = 64) -> np.ndarray:
    """Red, green / blue, white: every turn and mirroring looks different."""
    image = np.full((height, width, 3), 255, np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    image[: height // 2, width // 2 :] = (0, 255, 0)
    image[height // 2 :, : width // 2] = (0, 0, 255)
    return image


def write_video(
    path: Path,
    frames: Iterable[np.ndarray],
    fps: int = 25,
    times_s: Sequence[float] | None = None,
    matrix: Sequence[int] | None = None,
    codec: str = "libx264",
    audio: bool = False,
    **options: str,
) -> Path:
    """H.264 unless `codec` says otherwise; the container follows from the name."""
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=fps, options={"g": "10"})
        sound = container.add_stream("aac", rate=16_000) if audio else None
        for index, image in enumerate(frames):
            if index == 0:
                stream.height, stream.width = image.shape[:2]
                stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
                if times_s is not None:
                    stream.codec_context.time_base = stream.time_base = TIME_BASE
                if matrix is not None:
                    stream.set_display_matrix(matrix)
            frame = av.VideoFrame.from_ndarray(image)
            if times_s is not None:
                frame.pts, frame.time_base = round(times_s[index] / TIME_BASE), TIME_BASE
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        if sound is not None:
            container.mux(sound.encode(_silence()))
            container.mux(sound.encode())
    return path


def write_audio(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16_000)
        container.mux(stream.encode(_silence()))
        container.mux(stream.encode())
    return path


def _silence() -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
    frame.sample_rate = 16_000
    return frame
