"""What leaving out the least sure pixels buys on several roads.

    python -m steadyseg.studies.guide.roads --data data --roads roads road-realtime road-mobile

Single images that neither training nor fits saw; of CamVid's val, neighbouring seconds were in training. A pixel of a
coarse label is right if its label allows the class. Writes docs/records/guide/roads.json.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.core.classes import CAMVID
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.seg.data.coarse import is_right, void_of
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.studies.guide.measure import LEVELS, PAGE, above, level_of
from steadyseg.studies.harness.networks import digest_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import Cache, exit_code, origin

LEFT_OUT = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Shares of the pixels that are left out, the least sure first."""
THRESHOLDS = (0.5, 0.7, 0.8, 0.88, 0.9, 0.95)


def roads(data: Path, roads: Path) -> dict[str, tuple[ImageFolderSplit, slice]]:
    """The labelled pictures by the names of their roads. Fits saw every second one of val and test."""
    val, test = (open_split(data / "camvid", split, CAMVID) for split in ("val", "test"))
    india, facades = (open_split(roads / name, "val", CAMVID) for name in ("idd-lite", "labelmefacade"))
    return {
        "CamVid, val": (val, slice(None)),
        "CamVid, test stills": (test, slice(0, None, 2)),
        "India (IDD-Lite, coarse)": (india, slice(1, None, 2)),
        "facades (LabelMeFacade, coarse)": (facades, slice(1, None, 2)),
    }


def count(segmenter: Segmenter, split: ImageFolderSplit, places: slice) -> tuple[np.ndarray, int]:
    """(2, 256) labelled pixels by level of confidence, all and the right ones; and the number of pictures."""
    total, pictures = np.zeros((2, LEVELS), np.int64), range(len(split))[places]
    for number, place in enumerate(pictures):
        image, label = split[place]
        maps = segmenter.step(Frame(image, number, float(number), discontinuity=True))
        labelled = label != void_of(label, CAMVID.void_id)
        right = is_right(maps.label, label) & labelled
        total += [np.bincount(maps.confidence[kept], minlength=LEVELS) for kept in (labelled, right)]
    return total, len(pictures)


def right_without(levels: np.ndarray, share: float) -> float:
    """The accuracy after this share of the pixels is left out, the least sure first; of one level evenly."""
    pixels, right = levels
    out = np.clip(share * pixels.sum() - (pixels.cumsum() - pixels), 0, pixels)
    kept = np.divide(pixels - out, pixels, where=pixels > 0, out=np.zeros(LEVELS))
    return float((kept * right).sum() / (kept * pixels).sum())


def figures(levels: np.ndarray) -> dict[str, Any]:
    pixels, right = above(levels[0]), above(levels[1])
    places = [level_of(threshold) for threshold in THRESHOLDS]
    return {
        "without": [right_without(levels, share) for share in LEFT_OUT],
        "kept": [float(pixels[place] / pixels[0]) for place in places],
        "right": [float(right[place] / max(pixels[place], 1)) for place in places],
    }


def measured(model: str, sets: dict[str, tuple[ImageFolderSplit, slice]]) -> Iterator[tuple[str, Any]]:
    segmenter = open_segmenter(model, MethodOptions(mode="dnn"))
    for name, (split, places) in sets.items():
        levels, pictures = count(segmenter, split, places)
        yield name, {"pictures": pictures, "backend": segmenter.backend, **figures(levels)}


def run(given: argparse.Namespace) -> None:
    cache, sets = Cache(PAGE / "roads.json"), roads(given.data, given.roads)
    for model in given.models:
        cache.put(model, digest_of(model), dict(measured(model, sets)), origin())
    write_page("guide")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NETWORK")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--roads", type=Path, required=True)
    return exit_code("roads", lambda: run(parser.parse_args()))


if __name__ == "__main__":
    raise SystemExit(main())
