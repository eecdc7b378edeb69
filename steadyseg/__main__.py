"""The command `steadyseg`, which is `python -m steadyseg` too: the commands of `app`, and `bench` of `studies`."""

import sys

from steadyseg.app.cli import main as main
from steadyseg.app.commands import STEADYSEG, Command

STEADYSEG.kinds["bench"] = Command(
    "Time a model: the whole step against the network alone, MC dropout and a plain implementation.",
    "steadyseg.studies.performance.flags:BenchJob",
    "steadyseg.studies.performance.command:run_bench",
)

if __name__ == "__main__":
    sys.exit(main())
