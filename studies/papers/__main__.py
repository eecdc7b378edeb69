"""Lists and runs the rows of docs/explanation/papers.md from the code at hand.

    python -m steadyseg.studies.papers list
    python -m steadyseg.studies.papers few --device cpu --data data --runs runs/papers -o runs/papers/out
    python -m steadyseg.studies.papers width-64 --device cuda --parallel 4 --minutes 8 --data data
    python -m steadyseg.studies.papers few --dry-run

The data folder has camvid, cifar10 and cifar10-jpeg. Trainings come first, and rows share them. A stopped command goes
on where it stopped. Costs are of the trainings alone.
"""

import argparse
import sys
from pathlib import Path

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.machine import choose_device
from steadyseg.studies.harness.study import exit_code
from steadyseg.studies.papers.queue import Queue
from steadyseg.studies.papers.rows import ROWS, Row
from steadyseg.studies.papers.trainings import TRAININGS, Places


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a row, or `list`")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data sets")
    parser.add_argument("--runs", type=Path, default=Path("runs/papers"), help="where trainings and reports stay")
    parser.add_argument("--out", "-o", type=Path, default=Path("runs/papers/out"), help="folder of the records")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after these it stops, to go on later")
    parser.add_argument("--parallel", type=int, default=1, help="trainings at a time")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    given = parser.parse_args(words)
    return exit_code("papers", lambda: run(given))


def run(given: argparse.Namespace) -> None:
    if given.name == "list":
        print("\n".join(line for name, row in ROWS.items() for line in describe(name, row)))
        return
    row = row_of(given.name)
    device = given.device if given.dry_run else choose_device(given.device).type
    queue = Queue(Places(given.data, given.runs), device, given.minutes, given.parallel)
    if given.dry_run:
        commands = [queue.training(network) for network in row.networks]
        commands += [queue.command(given.name, row, number) for number in range(len(row.commands))]
        print("\n".join(" ".join(command) for command in commands))
        return
    done = queue.run(given.name, row)
    queue.bring_home(given.name, row, given.out)
    if not done:
        raise CheckFailed(f"{given.name} is not done; the same command goes on")


def row_of(name: str) -> Row:
    """The row of this name, whose code is at hand."""
    if name not in ROWS:
        raise InputError(f"no row is named {name}; expected list or one of {', '.join(ROWS)}")
    if commit := ROWS[name].commit:
        raise InputError(f"{name} needs the code of commit {commit}: git checkout {commit} && make setup")
    return ROWS[name]


def describe(name: str, row: Row) -> list[str]:
    """Lines of `list`: what is trained and what it costs, and of a row that was not run the prediction."""
    known = [TRAININGS[network].minutes for network in row.networks]
    cost = f"{sum(minutes or 0.0 for minutes in known) / 120:.1f} h on two cores" if all(known) else "cost not measured"
    told = f"{len(known)} trainings, {cost}, on a GPU not measured" if known else "no training"
    told = f"code at commit {row.commit}" if row.commit else told
    return [
        f"{name}: {told}{row.open and f'; {row.open}'}",
        *([f"    predicted: {row.prediction}"] if row.open else []),
    ]


if __name__ == "__main__":
    sys.exit(main())
