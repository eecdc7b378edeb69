"""Disagreement of ten dropout passes as a score of frames, beside the novelty of one pass.

python -m benchmarks.novelty.passes --data ../shared/data camvid-unet-s
"""

import argparse
from pathlib import Path

from app.open_model import open_segmenter
from benchmarks.novelty.collect import save, thinned
from benchmarks.novelty.shots import GROUPS, Data
from core.frame import Frame
from core.method import MethodOptions

PASSES = 10
SEEN = ("test", "motorways", "objects", "no_pictures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=4, help="only each so many-th picture")
    parser.add_argument("--out", type=Path, default=Path("runs/novelty"))
    given = parser.parse_args()
    for model in given.models:
        segmenter = open_segmenter(model, MethodOptions(mode="bnn", samples=PASSES))
        rows: dict[str, dict[str, list[float]]] = {}
        for group in SEEN:
            for number, shot in enumerate(thinned(GROUPS[group](Data(given.data)), given.every)):
                maps = segmenter.step(Frame(shot.image, number, number / 15))
                kind = "test" if group == "test" else shot.kind
                told = rows.setdefault(kind, {"disagreement": [], "entropy": []})
                told["disagreement"].append(float(maps.disagreement.mean()))
                told["entropy"].append(float(maps.entropy.mean()))
        save(given.out / Path(model).stem / "passes.pickle", {"passes": PASSES, "every": given.every, "rows": rows})


if __name__ == "__main__":
    main()
