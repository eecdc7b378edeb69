"""Runs the robustness studies of the included networks and writes docs/studies/robustness.

    python -m steadyseg.studies.robustness --data ../shared/data [--only NAME] [--fresh]

The data folder holds camvid/ and cifar10/, and video/ with what is not CamVid. A study is kept while its networks, its
data and its settings stay what they are.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

from steadyseg.app.console import track
from steadyseg.app.report_file import write_json
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.command_line import command_line
from steadyseg.studies.harness.networks import file_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.reports import run_missing
from steadyseg.studies.harness.study import PAGES, exit_code
from steadyseg.studies.robustness.flags import RobustnessJob
from steadyseg.studies.robustness.plots import write_plots
from steadyseg.studies.robustness.runs import Run, all_runs
from steadyseg.studies.robustness.studies import robustness

PAGE = PAGES / "robustness"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with camvid/, cifar10/ and video/")
    parser.add_argument("--only", nargs="*", help="only these runs, by name")
    parser.add_argument("--fresh", action="store_true", help="run again what is there already")
    given = parser.parse_args()
    return exit_code("robustness", lambda: work(given.data, given.only, given.fresh))


def work(data: Path, only: list[str] | None, fresh: bool) -> None:
    """Runs each study that is missing, into a folder of its own, then writes the page."""
    run_missing(all_runs(ood_videos(data)), PAGE, data, only, fresh, lambda run, digest: study(run, data, digest))
    write_page("robustness")


def study(run: Run, data: Path, digest: str) -> None:
    """Writes record and plots as a user gets them, but with the names of files instead of their paths."""
    models = [str(file_of(model)) for model in run.models]
    told = dataclasses.replace(run.options, ood=tuple(Path(video).name for video in run.options.ood))
    job = RobustnessJob(run.models, Path(run.data), only=run.studies, options=told)
    command = command_line("robustness", run.models, job)
    record = robustness(models, data / run.data, studies=run.studies, options=run.options, watch=track)
    record = round_figures(record) | {"digest": digest}
    out = PAGE / run.name
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "report.json", {"command": command, **record})
    if not run.options.seed:  # only the tables over seeds read the others
        write_plots(record, out)


def ood_videos(data: Path) -> tuple[str, ...]:
    """Videos that are out of distribution for networks of CamVid."""
    return tuple(str(path) for path in sorted((data / "video").glob("*.mp4")))


if __name__ == "__main__":
    sys.exit(main())
