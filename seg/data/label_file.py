"""Opens a label PNG: its pixels as they are, or one line that says why it cannot be a label."""

from pathlib import Path

import numpy as np
from PIL import Image

from core.errors import InputError
from core.system.pictures import look_at


def read_label_file(path: Path, modes: tuple[str, ...], expected: str) -> np.ndarray:
    """(H, W) or (H, W, 3) uint8 of an image in one of Pillow's `modes`; `expected` says in words what they are."""

    def look(picture: Image.Image) -> np.ndarray:
        if picture.mode not in modes:
            raise InputError(f"{path}: a label must be {expected}, got {picture.mode}")
        return np.array(picture, np.uint8)

    return look_at(path, look)
