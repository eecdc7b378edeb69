"""Frames per second by number format, with all instructions of the processor and held to AVX2.

    python -m steadyseg.studies.performance.formats [MODEL ...] [--row-seconds 15]

Held to AVX2 the same cores compute without AVX-512, VNNI and bf16, as most desktops do;
they keep the memory and clock of this machine.
"""

import argparse
import sys
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.studies.harness.measured_bench import PAGE, bench
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import Cache, exit_code, origin
from steadyseg.studies.performance.tables import FORMAT_ROWS, MODELS

PROCESSORS = {
    "AVX-512 with bf16": ({}, ("bf16", "int8")),
    "held to AVX2": ({"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}, ("fp32", "int8")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", default=MODELS, metavar="MODEL", help=f"some of {', '.join(MODELS)}; default: all"
    )
    parser.add_argument("--row-seconds", type=float, default=15.0, help="seconds that each row is timed")
    given = parser.parse_args()
    return exit_code("formats", lambda: run(given.models, given.row_seconds))


def run(models: list[str], seconds: float) -> None:
    cache = Cache(PAGE / "record.json")
    for model in models:
        found = {
            processor: {number: rows_of(model, number, environment, seconds) for number in numbers}
            for processor, (environment, numbers) in PROCESSORS.items()
        }
        cache.record.setdefault("formats", {})[model] = {**origin(), "seconds_per_row": seconds, "processors": found}
        cache.write()
    write_page("performance")


def rows_of(model: str, number: str, environment: dict[str, str], seconds: float) -> dict[str, Any]:
    """Frames a second by row; InputError where the format is not the one that ran."""
    flags = ("--precision", number, "--config", f"row_seconds={seconds}", "--only", *FORMAT_ROWS)
    record = bench(model, *flags, environment=environment)
    if record["backend"].split()[-1] != number:
        raise InputError(f"{model}: {record['backend']} ran, not {number}")
    return {name: row["frames_per_s"] for name, row in record["rows"].items()}


if __name__ == "__main__":
    sys.exit(main())
