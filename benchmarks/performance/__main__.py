"""Times the networks that ship, on a machine that does nothing else, and writes docs/performance.json and docs/performance.md.

    python -m benchmarks.performance [--seconds 20] [--soak 20000] [--document]

--document only makes the document again from the figures that are there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.performance.document import MODELS, SOAKED, write_document
from benchmarks.study import Cache, exit_code, origin
from core.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--soak", type=int, default=20000, help=f"frames of {SOAKED}, whose memory is watched; 0: none")
    parser.add_argument("--document", action="store_true", help="measure nothing")
    given = parser.parse_args()
    return exit_code("performance", lambda: run(given.seconds, given.soak, given.document))


def run(seconds: float, soak: int, only_document: bool) -> None:
    """One process of `steadyseg bench` for each model; nothing is kept of a run beside other work."""
    cache = Cache(DOCS / "performance.json")
    for model in () if only_document else MODELS:
        record = bench(model, seconds, soak if model == SOAKED else 0)
        if any("other processes were busy" in note for note in record["notes"]):
            raise InputError(f"{model}: {record['notes'][-1]}; run it again when the machine is quiet")
        cache.record[model] = record | {"commit": origin()["commit"]}
        cache.write()
    write_document(DOCS)


def bench(model: str, seconds: float, soak: int) -> dict[str, object]:
    """What `steadyseg bench --json` writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "app.cli", "bench", model, "--seconds", str(seconds), "--json", str(file)]
        done = subprocess.run([*command, *(["--soak", str(soak)] if soak else [])], cwd=DOCS.parent)
        if done.returncode:
            raise InputError(f"{model}: `steadyseg bench` failed")
        return dict(json.loads(file.read_text()))


if __name__ == "__main__":
    sys.exit(main())
