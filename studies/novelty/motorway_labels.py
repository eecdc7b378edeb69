"""Accuracy of a network on the motorway clips.

Sky, road and vehicles are labelled by hand on ten frames of each clip, and all else is void.

    python -m steadyseg.studies.novelty.motorway_labels --data data camvid-unet-s ...

Polygons and boxes keep away from edges; far vehicles are left out. Coordinates are shares of width and height.
"""

from typing import Any

import numpy as np
import torch

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.classes import CAMVID
from steadyseg.core.preprocess import enlarge, nearest
from steadyseg.studies.novelty.by_network import run
from steadyseg.studies.novelty.novelty_network import NoveltyNetwork
from steadyseg.studies.novelty.samples import CLIPS, Data

Box = tuple[float, float, float, float]
"""left, top, right, bottom"""
SKY: dict[str, tuple[Box, ...]] = {
    "motorway 1": ((0.10, 0.0, 0.65, 0.36),),
    "motorway 2": ((0.50, 0.0, 1.0, 0.11), (0.86, 0.0, 0.95, 0.30), (0.55, 0.0, 0.62, 0.28)),
}
ROAD = {
    "motorway 1": ((0.48, 0.62), (0.55, 0.62), (1.0, 0.80), (1.0, 1.0), (0.0, 1.0), (0.0, 0.80), (0.30, 0.66)),
    "motorway 2": ((0.46, 0.66), (0.60, 0.68), (0.64, 0.71), (1.0, 0.73), (1.0, 0.91), (0.25, 0.91), (0.25, 0.84)),
}
_TWO_CARS: tuple[Box, ...] = ((0.645, 0.585, 0.725, 0.68), (0.82, 0.58, 0.92, 0.67))
VEHICLES: dict[str, dict[int, tuple[Box, ...]]] = {
    "motorway 1": {
        0: ((0.0, 0.57, 0.035, 0.66),),
        24: ((0.0, 0.545, 0.10, 0.655),),
        48: ((0.055, 0.54, 0.155, 0.635),),
        73: ((0.11, 0.545, 0.195, 0.635),),
        97: ((0.0, 0.56, 0.09, 0.70), (0.16, 0.545, 0.235, 0.62)),
        122: ((0.0, 0.56, 0.16, 0.69), (0.20, 0.55, 0.265, 0.62)),
        146: ((0.0, 0.56, 0.06, 0.655), (0.075, 0.56, 0.205, 0.675), (0.235, 0.55, 0.29, 0.61)),
        171: ((0.005, 0.555, 0.13, 0.655), (0.135, 0.56, 0.24, 0.66)),
        195: ((0.07, 0.555, 0.175, 0.645), (0.18, 0.56, 0.275, 0.65)),
        220: ((0.125, 0.565, 0.195, 0.63), (0.215, 0.565, 0.285, 0.63)),
    },
    "motorway 2": dict.fromkeys((0, 4, 8, 12, 16, 20, 24, 28, 32, 37), _TWO_CARS),
}
NAMES = ("Sky", "Road", "Car")


def label_of(clip: str, index: int, height: int, width: int) -> np.ndarray:
    """(H, W) uint8 class ids."""
    import cv2

    label = np.full((height, width), CAMVID.void_id, np.uint8)
    road = np.array([(round(x * width), round(y * height)) for x, y in ROAD[clip]], np.int32)
    cv2.fillPoly(label, [road], CAMVID.names.index("Road"))
    for name, boxes in (("Sky", SKY[clip]), ("Car", VEHICLES[clip][index])):
        for left, top, right, bottom in boxes:
            rows, columns = (
                slice(round(top * height), round(bottom * height)),
                slice(round(left * width), round(right * width)),
            )
            label[rows, columns] = CAMVID.names.index(name)
    return label


def measure(model: str, data: Data) -> dict[str, Any]:
    """By clip: the share that is right of each class and of all, and the mean confidence there."""
    network = NoveltyNetwork(model)
    found: dict[str, Any] = {}
    for clip, file in CLIPS.items():
        counts, confidences = np.zeros((len(NAMES), 2)), {"none": [], "frame": []}  # type: ignore[var-annotated]
        with open_source(str(data.folder / "video" / file)) as source:
            for frame in source:
                if frame.index not in VEHICLES[clip]:
                    continue
                (logits, _, temperature, *_), size = network(frame.image)
                label = nearest(torch.from_numpy(label_of(clip, frame.index, *frame.image.shape[:2]))[None], size)[0]
                logits = enlarge(logits, size)[0].float()
                kept = label != CAMVID.void_id
                for row, name in enumerate(NAMES):
                    of_it = label == CAMVID.names.index(name)
                    counts[row] += (int(of_it.sum()), int((logits.argmax(0)[of_it] == CAMVID.names.index(name)).sum()))
                for way, divisor in (("none", 1.0), ("frame", float(temperature))):
                    confidences[way].append(float((logits / divisor).softmax(0).amax(0)[kept].mean()))
        by_class = {name: float(right / total) for name, (total, right) in zip(NAMES, counts, strict=True)}
        confidence = {way: float(np.mean(values)) for way, values in confidences.items()}
        found[clip] = by_class | {"all": float(counts[:, 1].sum() / counts[:, 0].sum()), "confidence": confidence}
    return found


if __name__ == "__main__":
    run(__doc__, "motorway_labels", measure)
