"""Uncertainty of one image by class: the total, and the part that is disagreement between forward passes with dropout.

    python demos/uncertainty_of_an_image.py [IMAGE [MODEL [OUTPUT]]]

Total = expected (each pass is unsure) + disagreement (the passes contradict each other). OUTPUT is a picture with the
classes, the uncertainty and a legend.
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

import torch
from PIL import Image

from steadyseg import MethodOptions, Street, open_segmenter, open_source
from steadyseg.app.video.views import Painter

PASSES = 5
"""The included networks are calibrated for this number."""


def main(path: str = "", model: str = "road-realtime", output: str = "") -> None:
    if path:
        with open_source(path) as source:  # an image is a source of one frame
            frame = next(iter(source))
    else:
        frame = Street(seed=7).frame(40)
    segmenter = open_segmenter(model, MethodOptions(mode="bnn", samples=PASSES))
    torch.manual_seed(0)  # seeds the dropout masks
    maps = segmenter.step(frame)
    total = maps.entropy / 255  # as shares of ln K, the largest entropy
    disagreement = maps.disagreement / 255
    print(f"{'class':12s} {'share':>7s} {'total':>7s} {'disagreement':>13s}")
    for number, name in enumerate(segmenter.classes.names):
        where = maps.label == number
        if where.any():
            print(f"{name:12s} {where.mean():7.1%} {total[where].mean():7.3f} {disagreement[where].mean():13.3f}")
    if output:
        Image.fromarray(Painter("side-by-side", segmenter.classes)(frame, maps)).save(output, quality=85)


if __name__ == "__main__":
    main(*sys.argv[1:])
