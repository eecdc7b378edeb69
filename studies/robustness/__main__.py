"""Runs the robustness studies of the included networks and writes docs/studies/robustness.

    python -m steadyseg.studies.robustness --data ../shared/data [--only NAME] [--fresh]

The data folder holds camvid/ and cifar10/, and video/ with what is not CamVid. A study is kept while its networks, its
data and its settings stay what they are.
"""

import dataclasses
import sys
from pathlib import Path

from steadyseg.app.console import track
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.command_line import command_line
from steadyseg.studies.harness.networks import file_of
from steadyseg.studies.harness.report_folder import write_plots, write_report_json
from steadyseg.studies.harness.reports import run_reports
from steadyseg.studies.harness.study import PAGES
from steadyseg.studies.robustness.flags import RobustnessJob
from steadyseg.studies.robustness.plots import draw_plots
from steadyseg.studies.robustness.runs import Run, all_runs
from steadyseg.studies.robustness.studies import robustness

PAGE = PAGES / "robustness"


def study(run: Run, data: Path, digest: str) -> None:
    """Writes record and plots as a user gets them, but with the names of files instead of their paths."""
    models = [str(file_of(model)) for model in run.models]
    told = dataclasses.replace(run.options, ood=tuple(Path(video).name for video in run.options.ood))
    job = RobustnessJob(run.models, Path(run.data), only=run.studies, options=told)
    command = command_line("robustness", run.models, job)
    record = robustness(models, data / run.data, studies=run.studies, options=run.options, watch=track)
    record = round_figures(record) | {"digest": digest}
    write_report_json(record, PAGE / run.name, command)
    if not run.options.seed:  # only the tables over seeds read the others
        write_plots(draw_plots(record), PAGE / run.name)


def ood_videos(data: Path) -> tuple[str, ...]:
    """Videos that are out of distribution for networks of CamVid."""
    return tuple(str(path) for path in sorted((data / "video").glob("*.mp4")))


if __name__ == "__main__":
    sys.exit(run_reports("robustness", __doc__, lambda data: all_runs(ood_videos(data)), study))
