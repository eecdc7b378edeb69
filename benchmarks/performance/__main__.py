"""Times the networks that ship, on a machine that does nothing else, and writes docs/performance.json and docs/performance.md.

    python -m benchmarks.performance [MODEL ...] [--seconds 20] [--soak 20000] [--document]

--document only makes the document again from the figures that are there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.performance.document import MODELS, SOAKED, write_document
from benchmarks.study import Cache, exit_code, origin
from core.device import available_cpus
from core.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"
CALM_S = 180
"""How long it waits; `steadyseg bench` itself says when others were busy."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help=f"of {', '.join(MODELS)}; all")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--soak", type=int, default=20000, help=f"frames of {SOAKED}, whose memory is watched; 0: none")
    parser.add_argument("--document", action="store_true", help="measure nothing")
    given = parser.parse_args()
    return exit_code("performance", lambda: run(() if given.document else given.models, given.seconds, given.soak))


def run(models: Sequence[str], seconds: float, soak: int) -> None:
    """One process of `steadyseg bench` for each model; nothing is kept of a run beside other work."""
    cache = Cache(DOCS / "performance.json")
    for model in models:
        wait_for_quiet()
        record = bench(model, seconds, soak if model == SOAKED else 0)
        if any("other processes were busy" in note for note in record["notes"]):
            raise InputError(f"{model}: {record['notes'][-1]}; run it again when the machine is quiet")
        cache.record[model] = record | {"commit": origin()["commit"]}
        cache.write()
    write_document(DOCS)


def wait_for_quiet() -> None:
    """The load is a mean over the last minute, and the model before it was this program's own."""
    for _ in range(CALM_S):
        if os.getloadavg()[0] < 0.4 * available_cpus():
            return
        time.sleep(1)


def bench(model: str, seconds: float, soak: int) -> dict[str, Any]:
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
