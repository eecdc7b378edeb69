"""Runs the studies of networks' insides and writes docs/studies/analysis.

    python -m steadyseg.studies.analysis --data ../shared/data [--only PAIR/STUDY ...] [--fresh]

The data folder holds camvid/ and cifar10/. A study is kept while its networks, its data and its flags stay the same.
"""

import argparse
import sys
from pathlib import Path

from steadyseg.app.commands import load
from steadyseg.studies.analysis.command import write_plots, write_record
from steadyseg.studies.analysis.runs import Run, all_runs
from steadyseg.studies.analysis.study import Study, run
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.command_line import command_line
from steadyseg.studies.harness.networks import file_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.reports import run_missing
from steadyseg.studies.harness.study import PAGES, exit_code

PAGE = PAGES / "analysis"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with camvid/ and cifar10/")
    parser.add_argument("--only", nargs="*", help="only these, as PAIR/STUDY")
    parser.add_argument("--fresh", action="store_true", help="run again what is there already")
    given = parser.parse_args()
    return exit_code("analysis", lambda: work(given.data, given.only, given.fresh))


def work(data: Path, only: list[str] | None, fresh: bool) -> None:
    """Runs each study that is missing, into a folder of its own, then writes the page."""
    run_missing(all_runs(), PAGE, data, only, fresh, lambda one, digest: study(one, data, digest))
    write_page("analysis")


def study(one: Run, data: Path, digest: str) -> None:
    """Writes record and plots as a user gets them, but with the names of files instead of their paths."""
    kind: Study = load(f"steadyseg.studies.analysis.{one.study}:STUDY")
    job = one.job([str(file_of(model)) for model in one.models], str(data / one.data))
    record = round_figures(run(kind, job, keep=lambda _: None)) | {"digest": digest}
    command = command_line(one.study, one.models, one.job(one.models, one.data))
    write_record(record, PAGE / one.name, command)
    write_plots(kind, record, PAGE / one.name)


if __name__ == "__main__":
    sys.exit(main())
