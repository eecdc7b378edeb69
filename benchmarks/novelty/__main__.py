"""docs/novelty.json and docs/novelty.md from what `collect` kept: python -m benchmarks.novelty --from runs/novelty"""

import argparse
import json
from pathlib import Path

from benchmarks.novelty.document import document
from benchmarks.novelty.figures import measure
from core.atomic_file import write_whole
from core.bundle import round_figures

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="folder", type=Path, default=Path("runs/novelty"))
    parser.add_argument("--every", type=int, required=True, help="as `collect` was told")
    given = parser.parse_args()
    path = DOCS / "novelty.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    for folder in sorted(given.folder.iterdir()):
        if (folder / "street.pickle").exists():
            record[folder.name] = {"every": given.every} | round_figures(json.loads(json.dumps(measure(folder))))
    write_whole(path, (json.dumps(record, indent=1) + "\n").encode())
    write_whole(DOCS / "novelty.md", document(record).encode())


if __name__ == "__main__":
    main()
