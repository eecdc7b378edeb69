"""Labels damaged on purpose: objects of another class, shifted masks, and objects that nobody outlined."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np

from steadyseg.seg.data.regions import Region, connected_regions

MIN_PIXELS, MAX_SHARE = 200, 0.25
"""Size of the objects that are damaged: pixels, and share of the picture."""
SHIFT = 0.3
"""Distance of a shift as a share of the object's longer side."""

Labels = Sequence[np.ndarray]
Damage = Callable[[np.ndarray, Region, np.random.Generator, int], np.ndarray]
"""(label (H, W), object, generator, number of classes) -> the damaged label."""


def swap(label: np.ndarray, thing: Region, generator: np.random.Generator, classes: int) -> np.ndarray:
    """Gives the whole object another class, any with the same chance."""
    others = [number for number in range(classes) if number != thing.id]
    damaged = label.copy()
    damaged[thing.rows, thing.columns][thing.mask] = generator.choice(others)
    return damaged


def erase(label: np.ndarray, thing: Region, generator: np.random.Generator, classes: int) -> np.ndarray:
    """Gives every pixel of the object the class of the nearest pixel outside, as if nobody had outlined it."""
    inside = full(thing, label.shape)
    outside = ~inside & (label < classes)
    _, nearest = cv2.distanceTransformWithLabels(
        (~outside).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    class_of = np.zeros(nearest.max() + 1, np.uint8)
    class_of[nearest[outside]] = label[outside]
    return np.where(inside, class_of[nearest], label)


def shift(label: np.ndarray, thing: Region, generator: np.random.Generator, classes: int) -> np.ndarray:
    """Moves the object's mask in a random direction by `SHIFT` of its longer side."""
    angle = generator.uniform(0, 2 * np.pi)
    distance = SHIFT * max(thing.mask.shape)
    rows, columns = np.nonzero(full(thing, label.shape))
    rows, columns = rows + round(distance * np.sin(angle)), columns + round(distance * np.cos(angle))
    within = (rows >= 0) & (rows < label.shape[0]) & (columns >= 0) & (columns < label.shape[1])
    damaged = erase(label, thing, generator, classes)
    damaged[rows[within], columns[within]] = thing.id
    return damaged


def full(thing: Region, shape: tuple[int, ...]) -> np.ndarray:
    """The object as (H, W) bool."""
    mask = np.zeros(shape, bool)
    mask[thing.rows, thing.columns] = thing.mask
    return mask


DAMAGES: dict[str, Damage] = {"swapped class": swap, "shifted mask": shift, "missing object": erase}


def damaged(labels: Labels, damage: Damage, count: int, seed: int, classes: int) -> list[np.ndarray]:
    """Returns the labels with `count` objects damaged, at most one in each picture."""
    generator = np.random.default_rng(seed)
    found = list(labels)
    for number in generator.permutation(len(labels))[:count]:
        label = labels[number]
        ids = np.where(label < classes, label.astype(np.int64), -1)
        things = [one for one in connected_regions(ids, MIN_PIXELS) if one.pixels <= MAX_SHARE * label.size]
        found[number] = damage(label, things[generator.integers(len(things))], generator, classes)
    return found
