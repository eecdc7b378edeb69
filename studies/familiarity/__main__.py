"""Writes the record, the tables and the plots of docs/records/familiarity from what was collected in runs/familiarity.

python -m steadyseg.studies.familiarity
"""

import argparse
import json
import pickle
from pathlib import Path

from steadyseg.studies.familiarity.by_network import OUT
from steadyseg.studies.familiarity.figures import measure
from steadyseg.studies.familiarity.plots import draw
from steadyseg.studies.familiarity.tables import Record
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, origin, read_record_file, round_figures, write_record

PAGE = PAGES / "familiarity"


def gather(folder: Path, known: Record) -> Record:
    """Replaces the figures of the collected networks in the record; all others stay."""
    collected = [one for one in sorted(folder.iterdir()) if (one / "street.pickle").exists()]
    found: Record = {
        "networks": {one.name: measure(one) | origin() for one in collected},
        "streams": {one.parent.name: pickle.loads(one.read_bytes()) for one in sorted(folder.glob("*/streams.pickle"))},
    }
    record = known | {name: known.get(name, {}) | rows for name, rows in found.items()}
    return dict(round_figures(json.loads(json.dumps(record))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=Path, default=OUT)
    given = parser.parse_args()
    path = PAGE / "record.json"
    record = gather(given.folder, read_record_file(path))
    write_record(path, record)
    draw(record, PAGE)
    write_page("familiarity")


if __name__ == "__main__":
    main()
