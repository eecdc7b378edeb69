"""Resident memory of a training on Cityscapes' layout, by the number of images.

    python -m steadyseg.studies.systems.memory FOLDER IMAGES

prints it for a folder that is filled with so many street frames, as links to a few files.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.core.classes import CAMVID
from steadyseg.seg.data.formats.cityscapes import CITYSCAPES, LABEL_IDS
from steadyseg.seg.street.drive import Street

COUNTS = (200, 2000)
HEIGHT, WIDTH = 512, 1024
"""Half of Cityscapes' size a side: 2.1 MB an image with its label, so that the 256 MB that stay decoded are 122."""
FILES = 20
STREET_NAMES = "sky building pole road sidewalk vegetation traffic_sign fence car person bicycle".split()
"""Cityscapes' names of the street's classes, in CamVid's order."""


def label_ids() -> np.ndarray:
    """The table (256,) uint8 from the street's class ids to Cityscapes' label ids; 0 (unlabelled) for void."""
    table = np.zeros(256, np.uint8)
    table[: len(CAMVID)] = [LABEL_IDS[CITYSCAPES.names.index(name)] for name in STREET_NAMES]
    return table


def write_folder(root: Path, counts: dict[str, int], height: int, width: int, files: int = FILES) -> Path:
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


def train_once(folder: Path) -> dict[str, float]:
    """Prepares a training and takes all batches of an epoch, without computing; returns megabytes."""
    import torch

    from steadyseg.core.training.config import TrainConfig
    from steadyseg.core.training.parts import Run
    from steadyseg.seg.options import AugmentOptions, SegTrainConfig, UNetOptions
    from steadyseg.seg.train import prepare_segmentation

    config = SegTrainConfig(
        data=folder,
        size=HEIGHT,
        unet=UNetOptions(channels=2),
        loaders=0,
        allow_missing_classes=True,
        augment=AugmentOptions(crop_height=256, crop_width=512),
        loop=TrainConfig(epochs=1, batch_size=4, threads=1),
    )
    before = resident_mb()
    parts = prepare_segmentation(config, Run(folder / "run", torch.device("cpu")))
    for _ in parts.batches(0):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"images": parts.images, "before_mb": before, "after_mb": resident_mb(), "peak_mb": peak}


def resident_mb() -> float:
    """Resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure_memory() -> dict[str, Any]:
    """Memory by number of images, each in a process of its own."""
    found = {}
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "steadyseg.studies.systems.memory", folder, str(count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[str(count)] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write_folder(place, {"train": int(sys.argv[2]), "val": 4}, HEIGHT, WIDTH)
    print(json.dumps(train_once(place)))
