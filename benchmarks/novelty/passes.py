"""Disagreement of ten dropout passes as a score of frames, beside the novelty of one pass.

python -m benchmarks.novelty.passes --data ../shared/data camvid-unet-s
"""

from typing import Any

from app.open_model import open_segmenter
from benchmarks.novelty.by_network import run
from benchmarks.novelty.collect import thinned
from benchmarks.novelty.shots import GROUPS, Data
from core.frame import Frame
from core.method import MethodOptions

PASSES, EVERY = 10, 4
"""And of how many pictures one is taken."""
SEEN = ("test", "motorways", "objects", "no_pictures")


def measure(model: str, data: Data) -> dict[str, Any]:
    segmenter = open_segmenter(model, MethodOptions(mode="bnn", samples=PASSES))
    rows: dict[str, dict[str, list[float]]] = {}
    for group in SEEN:
        for number, shot in enumerate(thinned(GROUPS[group](data), EVERY)):
            maps = segmenter.step(Frame(shot.image, number, number / 15))
            kind = "test" if group == "test" else shot.kind
            told = rows.setdefault(kind, {"disagreement": [], "entropy": []})
            told["disagreement"].append(float(maps.disagreement.mean()))
            told["entropy"].append(float(maps.entropy.mean()))
    return {"passes": PASSES, "every": EVERY, "rows": rows}


if __name__ == "__main__":
    run(__doc__, "passes", measure)
