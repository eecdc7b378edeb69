"""Changes of a picture that temperatures are fitted under: none, `TUNING_CORRUPTIONS` and textures, never the types
that robustness is measured by."""

from collections.abc import Iterator

import numpy as np

from core.corruptions.corruptions import TUNING_CORRUPTIONS, corrupt
from core.corruptions.textures import under_texture

SEVERITIES = (1, 3, 5)


def with_changes(image: np.ndarray, number: int, place: int) -> Iterator[tuple[bool, np.ndarray]]:
    """Yields (unchanged, (H, W, 3) uint8): the picture itself, then each change at three severities.

    Corruptions are drawn by the picture's number in its group, textures by its place in the data.
    """
    yield True, image
    for strength, severity in enumerate(SEVERITIES, start=1):
        for kind in TUNING_CORRUPTIONS:
            yield False, corrupt(image, kind, severity, 11, number)
        yield False, under_texture(image, strength, np.random.default_rng([place, severity]))
