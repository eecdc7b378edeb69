"""A class that training never saw: how well each score finds its pixels in test stills.

    python -m steadyseg.studies.novelty.left_out --data ../shared/data Car Bicyclist

For each class: `steadyseg train` trains a U-Net of width 16 on CamVid whose pixels of that class are void, at 180x240.
OUT/left-out-CLASS holds the data, the run and what was found. A training that was stopped goes on after its last epoch.
Thresholds are chosen as in regions.py, on objects pasted into stills that trainings hold out.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.trainings import Job, Queue, run_jobs
from steadyseg.studies.novelty.by_network import save
from steadyseg.studies.novelty.pasted import chosen_objects, pasted
from steadyseg.studies.novelty.region_scores import RegionScores
from steadyseg.studies.novelty.regions import Columns, learn, trained_stills
from steadyseg.studies.novelty.samples import Data, Sample, of_split

EPOCHS = 20
TRAINING = (
    f"seg --data {{data}} --size 180 --channels 16 --seed 0 --epochs {EPOCHS} --config crop_height=144 crop_width=192"
)


def without(name: str, data: Data, folder: Path) -> Path:
    """CamVid with that class void, its pictures linked."""
    made, missing = folder / "camvid", CAMVID.names.index(name)
    for split in ("train", "val"):
        (made / f"{split}annot").mkdir(parents=True, exist_ok=True)
        if not (made / split).exists():
            (made / split).symlink_to((data.folder / "camvid" / split).resolve())
        for file in sorted((data.folder / "camvid" / f"{split}annot").glob("*.png")):
            label = np.array(Image.open(file))
            label[label == missing] = CAMVID.void_id
            Image.fromarray(label).save(made / f"{split}annot" / file.name)
    return made


def trained(camvid: Path, folder: Path) -> str:
    queue = Queue(camvid, folder)
    if run_jobs([Job("run", tuple(TRAINING.split()))], queue):
        raise CheckFailed(f"{folder}: the training did not end")
    return str(queue.model("run"))


def stills(name: str, data: Data) -> Iterator[Sample]:
    """Test stills with the class; the label is 1 on it, 255 on void, else 0."""
    missing = CAMVID.names.index(name)
    for still, image, label in of_split(data, "test", list(range(len(data.split("test"))))):
        truth = np.where(label == CAMVID.void_id, 255, label == missing).astype(np.uint8)
        if (truth == 1).any():
            yield Sample(name, still, image, truth)


def measure(name: str, data: Data, folder: Path) -> dict[str, Any]:
    own = Data(folder)
    scores = RegionScores(read_segmenter(trained(without(name, data, folder), folder)))
    learn(scores, trained_stills(own))
    chosen = Columns(scores, pasted(list(of_split(own, "train", own.held_out)), chosen_objects(data)))
    return Columns(scores, stills(name, data)).figures(chosen.thresholds()) | {"epochs": EPOCHS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/novelty"))
    given = parser.parse_args()
    for name in given.classes:
        if name not in CAMVID.names:
            raise InputError(f"{name}: no class of CamVid; there are {', '.join(CAMVID.names)}")
        folder = given.out / f"left-out-{name}"
        save(folder / "left_out.pickle", measure(name, Data(given.data), folder))


if __name__ == "__main__":
    main()
