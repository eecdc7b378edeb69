"""Times the included networks on an otherwise idle machine and writes docs/records/performance.

python -m steadyseg.studies.performance [MODEL ...] [--row-seconds 20]
"""

import argparse
import sys
from collections.abc import Sequence

from steadyseg.studies.harness.measured_bench import PAGE, bench
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import Cache, exit_code, origin
from steadyseg.studies.performance.tables import MODELS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", default=MODELS, metavar="MODEL", help=f"some of {', '.join(MODELS)}; default: all"
    )
    parser.add_argument("--row-seconds", type=float, default=20.0, help="seconds that each row is timed")
    given = parser.parse_args()
    return exit_code("performance", lambda: run(given.models, given.row_seconds))


def run(models: Sequence[str], seconds: float) -> None:
    """Times each model and writes the record after each."""
    cache = Cache(PAGE / "record.json")
    for model in models:
        cache.record[model] = bench(model, "--config", f"row_seconds={seconds}") | {"commit": origin()["commit"]}
        cache.write()
    write_page("performance")


if __name__ == "__main__":
    sys.exit(main())
