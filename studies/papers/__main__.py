"""Lists and runs the rows of docs/explanation/papers.md from the code at hand.

    python -m steadyseg.studies.papers list
    python -m steadyseg.studies.papers few --device cpu --data data --runs runs/papers -o runs/papers/out
    python -m steadyseg.studies.papers width-64 --device cuda --parallel 4 --minutes 8 --data data
    python -m steadyseg.studies.papers few --dry-run

The data folder has camvid, cifar10 and cifar10-jpeg. Trainings come first, and rows share them. A stopped command goes
on where it stopped. Costs are of the trainings alone.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.machine import choose_device
from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME
from steadyseg.studies.harness.study import PROJECT, exit_code, origin, read_record_file, write_record
from steadyseg.studies.papers.rows import NOT_RUN, ROWS, Row
from steadyseg.studies.papers.trainings import TRAININGS, Places


@dataclass(frozen=True)
class Queue:
    """Where rows run, and for how long."""

    places: Places
    device: str = "auto"
    minutes: float = float("inf")
    """After these a command is killed; the next run of the queue resumes a training after its last whole epoch."""
    parallel: int = 1

    def model(self, name: str) -> Path:
        """The checkpoint of a training."""
        return self.places.runs.absolute() / name / MODEL_NAME

    def training(self, name: str) -> list[str]:
        """The command that begins a training or resumes it."""
        run = self.model(name).parent
        resume = ["--resume"] if (run / CONFIG_NAME).exists() else []
        words = self.places.words(TRAININGS[name].flags)
        return ["steadyseg", "train", *words, "--device", self.device, "--run", str(run), *resume]

    def out(self, name: str, number: int) -> Path:
        """What a command of a row writes, without an ending; with the ending .log what it printed."""
        return self.places.runs.absolute() / f"{name}-{number}"

    def command(self, name: str, row: Row, number: int) -> list[str]:
        """The words of a row's command."""
        given: dict[str, Any] = {network: self.model(network) for network in row.networks}
        given |= {"runs": self.places.runs.absolute(), "out": self.out(name, number), "device": self.device}
        return self.places.words(row.commands[number], **given)

    def run(self, name: str, row: Row) -> bool:
        """Trains, then measures, until all is done or the minutes are over; returns whether all is done."""
        end = time.monotonic() + 60 * self.minutes
        self.places.runs.mkdir(parents=True, exist_ok=True)
        if any("exclude=" in TRAININGS[network].flags for network in row.networks):
            self.places.write_lists()
        jobs = [(self.training(one), self.model(one).parent) for one in row.networks if not self.model(one).exists()]
        with ThreadPoolExecutor(self.parallel) as pool:
            done = all(pool.map(lambda job: run_command(job[0], job[1].with_suffix(".log"), end), jobs))
        for number in range(len(row.commands)):
            log = self.out(name, number).with_suffix(".log")
            if done and not log.exists():
                done = run_command(self.command(name, row, number), part := log.with_suffix(".part"), end)
                part.replace(log if done else part)
        return done

    def bring_home(self, name: str, row: Row, out: Path) -> None:
        """Writes the epochs and reports of a row to one JSON."""
        record = read_record_file(out / f"{name}.json")
        for network in row.networks:
            log = self.model(network).parent / "log.jsonl"
            events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            record[network] = {**origin(), "flags": TRAININGS[network].flags.split(), "evaluations": []}
            record[network]["epochs"] = [event for event in events if event["event"] == "epoch"]
        for number, command in enumerate(row.commands):
            single, report = self.out(name, number).with_suffix(".json"), self.out(name, number) / "report.json"
            network = command.split()[2].strip("{}")
            if single.exists() and network in row.networks:
                record[network]["evaluations"].append(json.loads(single.read_text()))
            elif single.exists() or report.exists():
                record[command] = json.loads((single if single.exists() else report).read_text())
        write_record(out / f"{name}.json", record)


def run_command(words: list[str], log: Path, end: float) -> bool:
    """Runs a command until it ends or the time is `end`; its output goes to the log. Returns whether it ended well."""
    print(" ".join(words), file=sys.stderr, flush=True)
    module = words[2:] if words[0] == "python" else words
    with log.open("ab") as file:
        try:
            rest_s, command = max(0.0, min(end - time.monotonic(), 1e9)), [sys.executable, "-m", *module]
            code = subprocess.run(command, stdout=file, stderr=file, cwd=PROJECT, timeout=rest_s).returncode
        except subprocess.TimeoutExpired:
            return False
    if code:
        print(f"exit code {code}; see {log}", file=sys.stderr)
    return code == 0


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
    cost += " (an estimate)" if all(known) and row.open == NOT_RUN else ""
    told = f"{len(known)} trainings, {cost}, on a GPU not measured" if known else "no training"
    told = f"code at commit {row.commit}" if row.commit else told
    return [f"{name}: {told}; {row.open}", f"    predicted: {row.prediction}"] if row.open else [f"{name}: {told}"]


if __name__ == "__main__":
    sys.exit(main())
