"""Runs the studies of networks' insides and writes docs/studies/analysis.

    python -m studies.analysis --data ../shared/data [--only PAIR/STUDY ...] [--fresh] [--document]

The data folder holds camvid/ and cifar10/. A study is kept while its networks, its data and its flags stay what they
are. The contact sheets of the worst errors show pictures of the data sets, so they are left out.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from app.commands import load
from classification.data.open import open_classification
from core.errors import InputError
from core.system.machine import keep_freed_memory
from studies.analysis.command import write_report
from studies.analysis.runs import Run, all_runs
from studies.analysis.study import Study, run
from studies.harness.bundle import round_figures
from studies.harness.command_line import command_line
from studies.harness.networks import file_of
from studies.harness.pages import write_page
from studies.harness.study import PAGES, data_digest, exit_code

PAGE = PAGES / "analysis"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with camvid/ and cifar10/")
    parser.add_argument("--only", nargs="*", help="only these, as PAIR/STUDY")
    parser.add_argument("--fresh", action="store_true", help="run again what is there already")
    parser.add_argument("--document", action="store_true", help="only write reports, plots and tables again")
    given = parser.parse_args()
    return exit_code("analysis", lambda: work(given.data, given.only, given.fresh, given.document))


def work(data: Path | None, only: list[str] | None, fresh: bool, document: bool) -> None:
    """Runs each study that is missing, into a folder of its own, then writes the page."""
    if document:
        draw_again()
    elif data is None:
        raise InputError("--data: give the folder with camvid/ and cifar10/, or --document")
    else:
        run_all(data, only, fresh)
    write_page("analysis")


def run_all(data: Path, only: list[str] | None, fresh: bool) -> None:
    keep_freed_memory()
    runs = all_runs()
    unknown = set(only or ()) - {one.name for one in runs}
    if unknown:
        raise InputError(f"--only {sorted(unknown)[0]}: no such run; there are {', '.join(one.name for one in runs)}")
    digests = data_digests(data)
    for one in runs:
        files = [file_of(model) for model in one.pair.models]
        absent = [str(file) for file in files if not file.exists()]
        if absent:
            Console(stderr=True).print(f"{one.name}: not run, no such file: {', '.join(absent)}")
            continue
        digest = one.digest(digests[one.pair.data])
        if one.name in (only or [one.name]) and (fresh or known_digest(one) != digest):
            study(one, files, data, digest)


def data_digests(data: Path) -> dict[str, str]:
    """The digest of each data set, by the name of its folder."""
    return {"camvid": data_digest(data / "camvid"), "cifar10": open_classification(data / "cifar10", "test").list_hash}


def study(one: Run, files: list[Path], data: Path, digest: str) -> None:
    """Writes the report as a user gets it, but with the names of files instead of their paths."""
    Console(stderr=True).print(one.name)
    out = PAGE / one.name
    kind: Study = load(f"studies.analysis.{one.study}:STUDY")
    record = run(kind, one.job([str(file) for file in files], str(data / one.pair.data)), keep=lambda _: None)
    record = round_figures(record) | {"digest": digest}
    write_report(
        kind,
        record,
        out,
        command_line(one.study, one.pair.models, one.job(one.pair.models, one.pair.data)),
        plots=True,
        without=("worst",),
    )


def draw_again() -> None:
    """Writes reports and plots again from what was measured."""
    for file in sorted((PAGE).glob("*/*/report.json")):
        record = json.loads(file.read_text())
        kind: Study = load(f"studies.analysis.{record['study']}:STUDY")
        write_report(kind, record, file.parent, record.pop("command"), plots=True, without=("worst",))


def known_digest(one: Run) -> str | None:
    """Digest of the report that is there already; None where there is none."""
    file = PAGE / one.name / "report.json"
    return json.loads(file.read_text())["digest"] if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
