"""Novelty with one and ten dropout passes, and the disagreement of ten as a score.

python -m steadyseg.studies.novelty.passes --data ../shared/data camvid-unet-s
"""

from typing import Any

import numpy as np
import torch

from steadyseg.app.open_model import open_segmenter
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.reference import NOVEL
from steadyseg.studies.novelty.by_network import run
from steadyseg.studies.novelty.collect import subsampled
from steadyseg.studies.novelty.samples import GROUPS, Data

PASSES = (1, 10)
EVERY = 4
"""Stride over the pictures."""
NOVELTY_OUTPUTS = ("disagreement", "entropy", "novelty", "alarm")
SEEN = ("test", "motorways", "objects", "no_pictures")


def measure(model: str, data: Data) -> dict[str, Any]:
    return {"every": EVERY, "rows": {str(count): look(model, data, count) for count in PASSES}}


def look(model: str, data: Data, samples: int) -> dict[str, dict[str, list[float]]]:
    """By kind of pictures: each score, higher where more novel, and whether that is an alarm."""
    torch.manual_seed(0)  # of the masks
    segmenter = open_segmenter(model, MethodOptions(mode="bnn", samples=samples))
    rows: dict[str, dict[str, list[float]]] = {}
    for group in SEEN:
        for number, sample in enumerate(subsampled(GROUPS[group](data), EVERY)):
            maps = segmenter.step(Frame(sample.image, number, number / 15))
            assert maps.familiarity is not None
            of_kind = rows.setdefault(
                "test" if group == "test" else sample.kind, {name: [] for name in NOVELTY_OUTPUTS}
            )
            share = maps.familiarity
            scores = (maps.disagreement.mean(), maps.entropy.mean(), -np.log(share), share <= NOVEL)
            for name, score in zip(NOVELTY_OUTPUTS, scores, strict=True):
                of_kind[name].append(float(score))
    return rows


if __name__ == "__main__":
    run(__doc__, "passes", measure)
