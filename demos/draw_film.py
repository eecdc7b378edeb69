"""The animation of the README: single frames, the same network smoothed over time, and its uncertainty, with a legend.

    python demos/draw_film.py [OUTPUT [SOURCE [FRAMES]]]

The README shows Udacity's `solidWhiteRight.mp4` (MIT); the default, the drawn street, has no licence of its own.
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

from itertools import islice
from typing import Literal

import cv2
import numpy as np
from PIL import Image

from steadyseg import Frame, Maps, MethodOptions, draw_overlay, draw_uncertainty, open_segmenter, open_source
from steadyseg.app.video.legend import Legend
from steadyseg.app.video.views import SCALES

WIDTH, TITLE = 336, 24
"""Pixels of a picture's width, and of the line above it."""
FPS, QUALITY = 12.5, 50
"""Every second frame of the source's 25 a second; quality of WebP."""
SINGLE, SMOOTHED = "single frames", "smoothed over time"
MODES: dict[str, Literal["dnn", "vq-dnn"]] = {SINGLE: "dnn", SMOOTHED: "vq-dnn"}


def titled(picture: np.ndarray, title: str) -> np.ndarray:
    picture = cv2.resize(
        picture, (WIDTH, round(WIDTH * picture.shape[0] / picture.shape[1])), interpolation=cv2.INTER_AREA
    )
    line = np.zeros((TITLE, WIDTH, 3), np.uint8)
    cv2.putText(line, title, (8, 17), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (255, 255, 255), 1, cv2.LINE_AA)
    return np.vstack([line, picture])


def main(output: str = "film.webp", source: str = "street:7", frames: str = "200") -> None:
    segmenters = {title: open_segmenter("road-realtime", MethodOptions(mode=mode)) for title, mode in MODES.items()}
    with open_source(source) as opened:
        shown: list[tuple[Frame, dict[str, Maps]]] = [
            (frame, {title: segmenter.step(frame) for title, segmenter in segmenters.items()})
            for frame in islice(opened, int(frames))
        ]
    legend = Legend(segmenters[SMOOTHED].classes, (None, None, SCALES["uncertainty"]))
    pictures = []
    for frame, found in shown[::2]:
        parts = [
            titled(draw_overlay(frame.image, maps.label, segmenters[title].classes.palette()), title)
            for title, maps in found.items()
        ]
        entropy = draw_uncertainty(found[SMOOTHED].entropy)
        picture = np.hstack([*parts, titled(entropy, "its uncertainty")])
        pictures.append(Image.fromarray(legend.add(picture, found[SMOOTHED])))
    pictures[0].save(
        output, save_all=True, append_images=pictures[1:], duration=round(1e3 / FPS), loop=0, quality=QUALITY, method=4
    )
    for title in MODES:
        labels = np.stack([found[title].label for _, found in shown])
        changed = (labels[1:] != labels[:-1]).mean() if len(labels) > 1 else 0.0
        expected = np.mean([found[title].expected_accuracy for _, found in shown])
        print(
            f"{title}: {changed:.2%} of the labels change from frame to frame, {expected:.0%} are expected to be right"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
