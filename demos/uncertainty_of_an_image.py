"""Uncertainty of one image by class: the total, and the part that is disagreement between dropout passes.

    python demos/uncertainty_of_an_image.py [IMAGE [MODEL]]

30 dropout passes; total = expected (each pass is unsure) + disagreement (the passes contradict each other).
"""

import sys

import torch

from steadyseg import MethodOptions, Street, open_segmenter, open_source


def main(path: str = "", model: str = "camvid-unet-s") -> None:
    if path:
        with open_source(path) as source:  # an image is a source of one frame
            frame = next(iter(source))
    else:
        frame = Street(seed=7).frame(40)
    segmenter = open_segmenter(model, MethodOptions(mode="bnn", samples=30))
    torch.manual_seed(0)  # seeds the dropout masks
    maps = segmenter.step(frame)
    total = maps.entropy / 255  # as shares of ln K, the largest entropy
    disagreement = maps.disagreement / 255
    print(f"{'class':12s} {'share':>7s} {'total':>7s} {'disagreement':>13s}")
    for number, name in enumerate(segmenter.classes.names):
        where = maps.label == number
        if where.any():
            print(f"{name:12s} {where.mean():7.1%} {total[where].mean():7.3f} {disagreement[where].mean():13.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
