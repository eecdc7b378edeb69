"""Opens a label PNG: its pixels as they are, or one line that says why it cannot be a label."""

from pathlib import Path

import numpy as np

from core.errors import InputError


def read_label_file(path: Path, modes: tuple[str, ...], expected: str) -> np.ndarray:
    """(H, W) or (H, W, 3) uint8 of an image in one of Pillow's `modes`; `expected` says in words what they are."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            if picture.mode not in modes:
                raise InputError(f"{path}: a label must be {expected}, got {picture.mode}")
            return np.array(picture, np.uint8)
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: cannot be read as a label image ({error})") from error
