"""Start-up time of an engine, from its first import to the first answer of a worker that imports nothing itself.

    python -m steadyseg.studies.scale.start ENGINE

Prints the seconds. The time to start Python and load the network is equal for all engines and does not count.
"""

import os
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from typing import Any

from steadyseg.studies.scale.run import ROOT

RUNS = 5


def measure() -> dict[str, Any]:
    """Each engine in processes of its own, one after the other: seconds, ascending."""
    return {engine: sorted(_once(engine) for _ in range(RUNS)) for engine in ("local", "ray")} | {"runs": RUNS}


def _once(engine: str) -> float:
    command = [sys.executable, "-m", "steadyseg.studies.scale.start", engine]
    return float(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])


def main(name: str) -> None:
    began_s = time.monotonic()
    from steadyseg.app.scale.engines.local_engine import open_engine

    with open_engine("local" if name == "ray" else None, partial(import_module, "os"), "cpu") as engine:
        engine.grow(1)
        engine.call(0, "getpid")
        answers: list[Any] = []
        while not answers:
            answers = engine.wait(60)
        assert answers[0].value not in (None, os.getpid())
        print(time.monotonic() - began_s)


if __name__ == "__main__":
    main(*sys.argv[1:])
