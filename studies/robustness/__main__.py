"""Runs the robustness studies of the included networks and writes docs/studies/robustness.

    python -m studies.robustness --data ../shared/data [--only NAME] [--fresh]

The data folder holds camvid/ and cifar10/, and video/ with what is not CamVid. A study is kept while its networks, its
data and its settings stay what they are.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from rich.console import Console

from app.report_file import write_json
from classification.data.open import open_classification
from core.errors import InputError
from studies.harness.bundle import round_figures
from studies.harness.command_line import command_line
from studies.harness.networks import file_of
from studies.harness.pages import write_page
from studies.harness.study import PAGES, data_digest, exit_code
from studies.robustness.command import show_progress, write_report
from studies.robustness.flags import RobustnessJob
from studies.robustness.runs import Run, all_runs, digest_of
from studies.robustness.studies import robustness

PAGE = PAGES / "robustness"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with camvid/, cifar10/ and video/")
    parser.add_argument("--only", nargs="*", help="only these runs, by name")
    parser.add_argument("--fresh", action="store_true", help="run again what is there already")
    given = parser.parse_args()
    return exit_code("robustness", lambda: run_all(given.data, given.only, given.fresh))


def run_all(data: Path, only: list[str] | None, fresh: bool) -> None:
    """Runs each study that is missing, into a folder of its own, then writes the page."""
    runs = all_runs(ood_videos(data))
    unknown = set(only or ()) - {run.name for run in runs}
    if unknown:
        raise InputError(
            f"--only {' '.join(sorted(unknown))}: no such run; there are {', '.join(r.name for r in runs)}"
        )
    digests = data_digests(data)
    for run in runs:
        files = checkpoints_of(run)
        absent = [file.name for file in files if not file.exists()]
        if absent:
            Console(stderr=True).print(f"{run.name}: not run, no such checkpoint: {', '.join(absent)}")
        elif run.name in (only or [run.name]):
            digest = digest_of(run, digests[run.group.data])
            if fresh or known_digest(run) != digest:
                study(run, data, digest)
    write_page("robustness")


def study(run: Run, data: Path, digest: str) -> None:
    """Writes the report as a user gets it, but with the names of files instead of their paths."""
    Console(stderr=True).print(run.name)
    models = tuple(map(str, checkpoints_of(run)))
    told = dataclasses.replace(run.options, ood=tuple(Path(video).name for video in run.options.ood))
    command = command_line(
        "robustness",
        run.group.models,
        RobustnessJob(run.group.models, Path(run.group.data), only=run.studies, options=told),
    )
    record = robustness(models, data / run.group.data, studies=run.studies, options=run.options, watch=show_progress)
    record = round_figures(record) | {"digest": digest}
    out = PAGE / run.name
    if run.options.seed:  # only the tables over seeds read it
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "report.json", {"command": command, **record})
    else:
        write_report(record, out, command, plots=True)


def ood_videos(data: Path) -> tuple[str, ...]:
    """Videos that are out of distribution for networks of CamVid."""
    return tuple(str(path) for path in sorted((data / "video").glob("*.mp4")))


def known_digest(run: Run) -> str | None:
    """Digest of the report that is there already; None where there is none."""
    file = PAGE / run.name / "report.json"
    return json.loads(file.read_text())["digest"] if file.exists() else None


def checkpoints_of(run: Run) -> list[Path]:
    """The files of its networks, there or not."""
    return [file_of(model) for model in run.group.models]


def data_digests(data: Path) -> dict[str, str]:
    """The digest of each data set, by the name of its folder."""
    return {"camvid": data_digest(data / "camvid"), "cifar10": open_classification(data / "cifar10", "test").list_hash}


if __name__ == "__main__":
    sys.exit(main())
