"""The picture of the README: a frame of the procedural street, its segmentation, its uncertainty.

    python demos/draw_street.py [OUTPUT [SEED [FRAME]]]

The street draws its own labels, so the share of right pixels is known.
"""

import sys

import cv2
import numpy as np

from steadyseg import MethodOptions, Street, draw_overlay, draw_uncertainty, open_segmenter

HEIGHT, WIDTH = 384, 600
RECENT = 8
"""Frames that the temporal mean sees before the picture is taken."""


def main(output: str = "street.jpg", seed: str = "12", frame: str = "40") -> None:
    street = Street(seed=int(seed), height=HEIGHT, width=WIDTH)
    segmenter = open_segmenter("street-tiny", MethodOptions(mode="vq-dnn"), size=256)
    for shown in street.frames(RECENT, start=int(frame) - RECENT + 1):
        maps = segmenter.step(shown)
    overlay = draw_overlay(shown.image, maps.label, segmenter.classes.palette())
    picture = np.hstack([shown.image, overlay, draw_uncertainty(maps.entropy)])
    cv2.imwrite(output, picture[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])
    right = (maps.label == shown.label).mean()
    print(f"{output}: {right:.1%} of the pixels are right")


if __name__ == "__main__":
    main(*sys.argv[1:])
