"""Motion of the camera of the CamVid val stream, its noise, and its changes of brightness, between frames 1/15 s apart.

    python studies/camera_motion/measure.py ../shared/data/camvid

The constants of seg/data/moving_stills.py are these figures, rounded; they were fixed before any method was compared on
them.
"""

import argparse
import itertools
import json
import math
from pathlib import Path

import cv2
import numpy as np

from steadyseg.seg.data.camvid import open_split

FLAT = 8.0
"""Largest Sobel slope (grey levels per pixel, times 8) of a pixel whose difference between frames is taken for
noise."""
MOVED = 20
"""Differences above this many levels are things that moved."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with val/ and valannot/")
    split = open_split(parser.parse_args().data, "val")
    pictures = [image for image, _ in (split[i] for i in range(len(split)))]
    pairs = [between(a, b) for a, b in itertools.pairwise(pictures)]
    columns = {name: np.array([pair[name] for pair in pairs]) for name in pairs[0]}
    print(json.dumps({name: describe(values) for name, values in columns.items()}, indent=1))


def between(previous: np.ndarray, now: np.ndarray) -> dict[str, float]:
    """Similarity transform about the centre from `previous` to `now`, noise and log gain; levels of 255, pixels,
    radians."""
    old, new = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (previous, now))
    points = cv2.goodFeaturesToTrack(old, 800, 0.01, 6)
    moved, found, _ = cv2.calcOpticalFlowPyrLK(old, new, points, points.copy(), winSize=(21, 21), maxLevel=3)
    tracked = found.ravel() == 1
    cv2.setRNGSeed(0)
    matrix, _ = cv2.estimateAffinePartial2D(
        points[tracked], moved[tracked], method=cv2.RANSAC, ransacReprojThreshold=1.0
    )
    height, width = old.shape
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    shift = matrix[:, :2] @ centre + matrix[:, 2] - centre
    aligned = cv2.warpAffine(
        old.astype(np.float32), matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT
    )
    difference = new.astype(np.float32) - aligned
    slope = np.hypot(cv2.Sobel(new, cv2.CV_32F, 1, 0), cv2.Sobel(new, cv2.CV_32F, 0, 1))
    kept = (slope < FLAT) & (np.abs(difference) < MOVED)
    still = difference[kept]
    return {
        "shift_x_px": float(shift[0]),
        "shift_y_px": float(shift[1]),
        "log_zoom": 0.5 * math.log(abs(float(np.linalg.det(matrix[:, :2])))),
        "angle_rad": math.atan2(matrix[1, 0], matrix[0, 0]),
        "noise_levels": 1.4826 * float(np.median(np.abs(still - np.median(still)))) / math.sqrt(2.0),
        "log_gain": float(np.log(new[kept].mean() / aligned[kept].mean())),
    }


def describe(values: np.ndarray) -> dict[str, float]:
    """Mean, spread, and the spread of what changes from one pair to the next, which is shake and not movement."""
    return {
        "mean": round(float(values.mean()), 5),
        "sd": round(float(values.std()), 5),
        "median": round(float(np.median(values)), 5),
        "shake_sd": round(float(np.diff(values).std()) / math.sqrt(2.0), 5),
    }


if __name__ == "__main__":
    main()
