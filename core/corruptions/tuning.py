"""Changes of a picture under which temperatures are fitted: none, `TUNING_CORRUPTIONS`, textures and faults.

Robustness is measured by other types; the generated textures are unlike every corruption of the benchmark.
"""

from collections.abc import Iterator

import numpy as np

from steadyseg.core.corruptions.corruptions import TUNING_CORRUPTIONS, corrupt
from steadyseg.core.corruptions.faults import FAULTS

SEVERITIES = (1, 3, 5)
KINDS = ("cells", "stripes", "checks", "dots")
ALPHAS = (0.25, 0.45, 0.65)
"""Share of the texture by severity 1, 2, 3."""


def texture(height: int, width: int, generator: np.random.Generator) -> np.ndarray:
    """(H, W, 3) uint8: one of `KINDS` in random colours."""
    kind = KINDS[int(generator.integers(len(KINDS)))]
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    period = float(np.exp(generator.uniform(np.log(6), np.log(60))))
    if kind == "cells":  # Voronoi
        count = max(4, int(height * width / period**2 / 4))
        points = generator.uniform(0, 1, (min(count, 200), 2)) * (height, width)
        index = np.argmin((rows[..., None] - points[:, 0]) ** 2 + (columns[..., None] - points[:, 1]) ** 2, -1)
        return generator.integers(0, 256, (len(points), 3), dtype=np.uint8)[index]
    angle = generator.uniform(0, np.pi)
    u, v = columns * np.cos(angle) + rows * np.sin(angle), rows * np.cos(angle) - columns * np.sin(angle)
    if kind == "stripes":
        share = 0.5 + 0.5 * np.sin(2 * np.pi * u / period)
    elif kind == "checks":
        share = ((np.floor(u / period) + np.floor(v / period)) % 2).astype(np.float32)
    else:
        share = ((u % period - period / 2) ** 2 + (v % period - period / 2) ** 2 < (period / 4) ** 2).astype(np.float32)
    first, second = generator.uniform(0, 255, (2, 3))
    return np.rint(share[..., None] * first + (1 - share[..., None]) * second).astype(np.uint8)


def under_texture(image: np.ndarray, severity: int, generator: np.random.Generator) -> np.ndarray:
    """Blends a texture over all or one half of the picture, with severity 1, 2 or 3; labels stay valid."""
    height, width = image.shape[:2]
    alpha = np.full((height, width, 1), ALPHAS[severity - 1], np.float32)
    if generator.random() < 0.5:
        angle, rows, columns = generator.uniform(0, 2 * np.pi), *np.mgrid[0:height, 0:width]
        alpha *= ((columns - width / 2) * np.cos(angle) + (rows - height / 2) * np.sin(angle) > 0)[..., None]
    mixed = (1 - alpha) * image + alpha * texture(height, width, generator)
    return np.rint(mixed).astype(np.uint8)


def with_changes(image: np.ndarray, number: int, place: int) -> Iterator[tuple[bool, np.ndarray]]:
    """Yields (unchanged, (H, W, 3) uint8): the picture itself, then each corruption and a texture at three severities,
    and each fault at one.

    Corruptions are drawn by the picture's number in its group, textures and faults by its place in the data.
    """
    yield True, image
    for strength, severity in enumerate(SEVERITIES, start=1):
        for kind in TUNING_CORRUPTIONS:
            yield False, corrupt(image, kind, severity, 11, number)
        yield False, under_texture(image, strength, np.random.default_rng([place, severity]))
    for which, fault in enumerate(FAULTS):
        yield False, fault(image, (number + which) % len(SEVERITIES), np.random.default_rng([place, which, 7]))
