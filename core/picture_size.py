"""The size of a network's input for frames of any size; no torch here, which takes seconds to import."""

from steadyseg.core.errors import InputError

SIZE_MULTIPLE = 32
"""Widths are rounded to a multiple of this: five halvings without a remainder, which every encoder here accepts."""
MAX_INPUT_PIXELS = 2**23
"""Pixels of a network's input, a little more than 4K; camvid-unet-s takes 3.8 GB for 2048 x 4096."""
MAX_ASPECT = 16
"""Largest width / height: a frame 8192 wide and 1 high would need a network input of 360 x 2.9 million pixels."""


def network_size(frame_height: int, frame_width: int, height: int) -> tuple[int, int]:
    """The (h, w) of the network's input: the given height, the frame's aspect, a width in multiples of 32."""
    if height < SIZE_MULTIPLE:
        raise InputError(f"the network's height must be {SIZE_MULTIPLE} pixels or more, got {height}")
    if frame_width > MAX_ASPECT * frame_height:
        raise InputError(
            f"a frame of {frame_width}x{frame_height} is more than {MAX_ASPECT} times as wide as high; crop it first"
        )
    width = max(SIZE_MULTIPLE, round(height * frame_width / frame_height / SIZE_MULTIPLE) * SIZE_MULTIPLE)
    if height * width > MAX_INPUT_PIXELS:
        raise InputError(
            f"a network at a height of {height} would see {width}x{height} pixels, at most {MAX_INPUT_PIXELS} in all; "
            "use a smaller size"
        )
    return height, width
