"""Street frames in Cityscapes' folder layout."""

import os
from pathlib import Path

import numpy as np
from PIL import Image

from steadyseg.core.classes import CAMVID
from steadyseg.seg.data.formats.cityscapes import CITYSCAPES, LABEL_IDS
from steadyseg.street.drive import Street

STREET_NAMES = "sky building pole road sidewalk vegetation traffic_sign fence car person bicycle".split()
"""Cityscapes' names of the street's classes, in CamVid's order."""


def label_ids() -> np.ndarray:
    """The table (256,) uint8 from the street's class ids to Cityscapes' label ids; 0 (unlabelled) for void."""
    table = np.zeros(256, np.uint8)
    table[: len(CAMVID)] = [LABEL_IDS[CITYSCAPES.names.index(name)] for name in STREET_NAMES]
    return table


def write_folder(root: Path, counts: dict[str, int], height: int, width: int, files: int = 20) -> Path:
    """Writes street frames in Cityscapes' layout; beyond `files` a split's names are hard links to its first ones."""
    table = label_ids()
    for seed, (split, count) in enumerate(counts.items()):
        city = f"city{seed}"
        places = {kind: root / kind / split / city for kind in ("leftImg8bit", "gtFine")}
        for place in places.values():
            place.mkdir(parents=True)
        endings = {"leftImg8bit": "leftImg8bit.png", "gtFine": "gtFine_labelIds.png"}
        frames = Street(seed=seed, height=height, width=width).frames(min(count, files))
        for frame in frames:
            assert frame.label is not None
            for kind, values in (("leftImg8bit", frame.image), ("gtFine", table[frame.label])):
                Image.fromarray(values).save(places[kind] / f"{city}_000000_{frame.index:06}_{endings[kind]}")
        for number in range(files, count):
            for kind, place in places.items():
                name = "{}_000000_{:06}_{}"
                source = place / name.format(city, number % files, endings[kind])
                os.link(source, place / name.format(city, number, endings[kind]))
    return root
