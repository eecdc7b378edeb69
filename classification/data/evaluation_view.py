"""What a network sees of a picture when it is measured: its middle, or the whole of it, at the network's size."""

import numpy as np
from PIL import Image

RESIZED, CROPPED = 256, 224
"""ImageNet's evaluation as published: the shorter side becomes 256 pixels, the middle 224x224 of that are seen."""


def centre_view(image: np.ndarray, size: int) -> np.ndarray:
    """(H, W, 3) uint8 -> (size, size, 3): shorter side to size * 256 / 224, bilinear with antialiasing, then the
    middle."""
    height, width = image.shape[:2]
    short = size * RESIZED // CROPPED
    tall = (max(short, short * height // width), max(short, short * width // height))
    image = _resize(image, *tall)
    top, left = (round((side - size) / 2) for side in tall)
    return image[top : top + size, left : left + size]


def whole_view(image: np.ndarray, size: int) -> np.ndarray:
    """(H, W, 3) uint8 -> (size, size, 3): as it is where the size is right, else resized."""
    return image if image.shape[:2] == (size, size) else _resize(image, size, size)


def _resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
