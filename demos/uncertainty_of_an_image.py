"""Where may the answer be wrong? Total uncertainty of one picture, split into noise and disagreement.

    python demos/uncertainty_of_an_image.py [IMAGE [MODEL]]

30 dropout passes; total = expected (the passes are unsure) + disagreement (the passes contradict each other).
"""

import sys
from pathlib import Path

import torch

from core.frame import Frame
from seg.data.camvid import read_image
from seg.street.drive import Street
from seg.torch_segmenter import open_segmenter


def main(path: str = "", model: str = "camvid-unet-s") -> None:
    image = read_image(Path(path)) if path else Street(seed=7).frame(40).image
    segmenter = open_segmenter(model, mode="bnn", samples=30)
    torch.manual_seed(0)  # the dropout masks
    maps = segmenter.step(Frame(image, index=0, time_s=0.0))
    total = maps.entropy / 255  # as shares of ln K, the entropy of knowing nothing
    disagreement = maps.disagreement / 255
    print(f"{'class':12s} {'share':>7s} {'total':>7s} {'disagreement':>13s}")
    for number, name in enumerate(segmenter.classes.names):
        where = maps.label == number
        if where.any():
            print(f"{name:12s} {where.mean():7.1%} {total[where].mean():7.3f} {disagreement[where].mean():13.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
