"""Writes the record, the tables and the plots of docs/studies/novelty from what was collected in runs/novelty.

python -m steadyseg.studies.novelty
"""

import argparse
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, origin, read_record_file, write_record
from steadyseg.studies.novelty.ensemble import measure_ensemble
from steadyseg.studies.novelty.figures import auroc_of, measure
from steadyseg.studies.novelty.plots import draw
from steadyseg.studies.novelty.tables import Record

PAGE = PAGES / "novelty"
STUDIES = ("regions", "streams", "motorway_labels")
SEEDS = ("paper-plain-0", "paper-plain-1", "paper-plain-2")


def gather(folder: Path, known: Record) -> Record:
    """Replaces the figures of the collected networks in the record; all others stay."""
    collected = [one for one in sorted(folder.iterdir()) if (one / "street.pickle").exists()]
    left_out = {
        file.parent.name.removeprefix("left-out-"): read(file) for file in sorted(folder.glob("*/left_out.pickle"))
    }
    found: Record = {
        "networks": {one.name: measure(one) | origin() for one in collected},
        **{
            study: {one.parent.name: read(one) for one in sorted(folder.glob(f"*/{study}.pickle"))} for study in STUDIES
        },
        "passes": {one.name: passes(one / "passes.pickle") for one in collected},
        "left_out": left_out,
        "classifiers": {file.parent.name: read(file) for file in sorted(folder.glob("*/classifier.pickle"))},
    }
    record = known | {name: known.get(name, {}) | rows for name, rows in found.items()}
    if all(folder / seed in collected for seed in SEEDS):
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
    given = parser.parse_args()
    path = PAGE / "record.json"
    record = gather(given.folder, read_record_file(path))
    write_record(path, record)
    draw(record, PAGE)
    write_page("novelty")


if __name__ == "__main__":
    main()
