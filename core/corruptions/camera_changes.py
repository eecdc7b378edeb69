"""Effects of another camera on a picture that leave its labels valid: colour, exposure, size, H.264."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from steadyseg.core.corruptions.corruptions import require_picture


def gamma(image: np.ndarray, exponent: float) -> np.ndarray:
    """Exposure: 255 (x / 255) ** exponent."""
    table = np.rint(255 * (np.arange(256) / 255) ** exponent).astype(np.uint8)
    return table[image]


def gains(image: np.ndarray, red: float, green: float, blue: float) -> np.ndarray:
    """White balance and brightness: each channel is multiplied by a factor and clipped at 255."""
    return np.clip(np.rint(image * np.array([red, green, blue])), 0, 255).astype(np.uint8)


def rescale(image: np.ndarray, factor: float) -> np.ndarray:
    """Resizes the picture to `factor` times its size and back."""
    import cv2

    height, width = image.shape[:2]
    small = cv2.resize(
        image, (max(1, round(width * factor)), max(1, round(height * factor))), interpolation=cv2.INTER_AREA
    )
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)


def h264(
    clip: Sequence[np.ndarray], height: int, *, crf: int | None = None, bits_per_second: int | None = None
) -> np.ndarray:
    """The last picture (H, W, 3) of a clip, resized to `height`, coded in H.264 at 25 frames a second and decoded."""
    import av
    import cv2

    require_picture(clip[0], 2)
    width = round(clip[0].shape[1] * height / clip[0].shape[0] / 2) * 2
    context: Any = av.CodecContext.create("libx264", "w")
    odd = height % 2  # the coder takes even sides alone
    context.width, context.height, context.pix_fmt = width, height + odd, "yuv420p"
    context.time_base, context.framerate, context.thread_count = Fraction(1, 25), Fraction(25), 1
    context.options = {"preset": "medium"} | ({} if crf is None else {"crf": str(crf)})
    if bits_per_second is not None:
        context.bit_rate = bits_per_second
    decoder: Any = av.CodecContext.create("h264", "r")
    decoder.thread_count = 1
    packets = []
    for number, picture in enumerate(clip):
        scaled = cv2.resize(
            picture, (width, height), interpolation=cv2.INTER_AREA if height < picture.shape[0] else cv2.INTER_LINEAR
        )
        even = np.pad(scaled, ((0, odd), (0, 0), (0, 0)), mode="edge")
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(even, np.uint8), format="rgb24")
        frame.pts = number
        packets += context.encode(frame)
    packets += context.encode(None)
    frames = [frame for packet in packets for frame in decoder.decode(packet)] + decoder.decode(None)
    return frames[-1].to_ndarray(format="rgb24")[:height]


def random_camera(image: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The picture as some other camera may give it: exposure, white balance, size and H.264, each drawn."""
    changed = gamma(image, float(np.exp(generator.uniform(-0.35, 0.35))))
    level = generator.uniform(0.85, 1.15)
    changed = gains(changed, *(level * generator.uniform(0.85, 1.15, 3)))
    if generator.random() < 0.5:
        changed = rescale(changed, generator.uniform(0.45, 1.0))
    if generator.random() < 0.6:
        changed = h264([changed], image.shape[0], crf=int(generator.integers(16, 33)))
    return changed
