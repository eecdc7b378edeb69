"""docs/novelty.json, docs/novelty.md and its plots from what was collected.

python -m benchmarks.novelty                the record from runs/novelty, then document and plots
python -m benchmarks.novelty --document     document and plots again, from the record
"""

import argparse
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.novelty.document import document
from benchmarks.novelty.ensemble import measure_ensemble
from benchmarks.novelty.figures import auroc_of, measure
from benchmarks.novelty.plots import draw
from benchmarks.study import origin
from core.atomic_file import write_whole
from core.bundle import round_figures

DOCS = Path(__file__).parents[2] / "docs"
SEEDS = ("paper-plain-0", "paper-plain-1", "paper-plain-2")


def gather(folder: Path) -> dict[str, Any]:
    """What was measured; the cost of a frame is measured by itself and kept."""
    networks = {one.name: measure(one) for one in sorted(folder.iterdir()) if (one / "swap.pickle").exists()}
    record: dict[str, Any] = {**origin(), "networks": networks}
    for study in ("regions", "streams", "motorway_labels"):
        record[study] = {name: read(folder / name / f"{study}.pickle") for name in networks}
    found = {
        file.parent.name.removeprefix("left-out-"): read(file) for file in sorted(folder.glob("*/left_out.pickle"))
    }
    record["left_out"] = found
    record["passes"] = {name: passes(folder / name / "passes.pickle") for name in networks}
    record["classifiers"] = {file.parent.name: read(file) for file in sorted(folder.glob("*/classifier.pickle"))}
    if set(SEEDS) <= set(networks):
        record["ensemble"] = measure_ensemble([folder / seed for seed in SEEDS])
    return dict(round_figures(json.loads(json.dumps(record))))


def read(path: Path) -> Any:
    return pickle.loads(path.read_bytes()) if path.exists() else None


def passes(path: Path) -> dict[str, Any] | None:
    """By number of passes: AUROC of each score by kind of pictures, and alarms, also among test stills."""
    found = read(path)
    if found is None:
        return None
    record: dict[str, Any] = {"every": found["every"], "passes": {}}
    for count, rows in found["rows"].items():
        inside = rows["test"]
        record["passes"][count] = {
            "auroc": {
                kind: {name: auroc_of(np.array(inside[name]), np.array(told[name])) for name in told if name != "alarm"}
                for kind, told in rows.items()
                if kind != "test"
            },
            "alarms": {kind: float(np.mean(told["alarm"])) for kind, told in rows.items()},
        }
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=Path, default=Path("runs/novelty"))
    parser.add_argument("--document", action="store_true", help="from the record alone")
    given = parser.parse_args()
    path = DOCS / "novelty.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    if not given.document:
        record = gather(given.folder) | {key: record[key] for key in ("cost",) if key in record}
        write_whole(path, (json.dumps(record, indent=1) + "\n").encode())
    draw(record, DOCS)
    write_whole(DOCS / "novelty.md", document(record).encode())


if __name__ == "__main__":
    main()
