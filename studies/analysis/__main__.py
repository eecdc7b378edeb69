"""Runs the studies of networks' insides and writes docs/studies/analysis.

    python -m steadyseg.studies.analysis --data ../shared/data [--only PAIR/STUDY ...] [--fresh]

The data folder holds camvid/ and cifar10/. A study is kept while its networks, its data and its flags stay the same.
"""

import sys
from pathlib import Path

from steadyseg.app.commands import load
from steadyseg.studies.analysis.runs import Run, all_runs
from steadyseg.studies.analysis.study import Study, run
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.command_line import command_line
from steadyseg.studies.harness.networks import file_of
from steadyseg.studies.harness.report_folder import write_plots, write_report_json
from steadyseg.studies.harness.reports import run_reports
from steadyseg.studies.harness.study import PAGES

PAGE = PAGES / "analysis"


def study(one: Run, data: Path, digest: str) -> None:
    """Writes record and plots as a user gets them, but with the names of files instead of their paths."""
    kind: Study = load(f"steadyseg.studies.analysis.{one.study}:STUDY")
    job = one.job([str(file_of(model)) for model in one.models], str(data / one.data))
    record = round_figures(run(kind, job, keep=lambda _: None)) | {"digest": digest}
    command = command_line(one.study, one.models, one.job(one.models, one.data))
    write_report_json(record, PAGE / one.name, command)
    write_plots(kind.figures(record["results"]), PAGE / one.name)


if __name__ == "__main__":
    sys.exit(run_reports("analysis", __doc__, lambda _: all_runs(), study))
