"""Runs the trainings and commands of a row. A stopped queue goes on where it stopped."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME
from steadyseg.studies.harness.study import PROJECT, origin, read_record_file, write_record
from steadyseg.studies.papers.rows import Row
from steadyseg.studies.papers.trainings import TRAININGS, Places

EARLY = Path("checkpoints") / "epoch-0006.safetensors"
"""The snapshot after a tenth of a training."""


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
        given |= {f"{network}-early": self.model(network).parent / EARLY for network in row.networks}
        given |= {"runs": self.places.runs.absolute(), "out": self.out(name, number), "device": self.device}
        return self.places.words(row.commands[number], **given)

    def run(self, name: str, row: Row) -> bool:
        """Trains, then measures, until all is done or the minutes are over; returns whether all is done."""
        end = time.monotonic() + 60 * self.minutes
        self.places.runs.mkdir(parents=True, exist_ok=True)
        if any("exclude=" in TRAININGS[network].flags for network in row.networks):
            self.places.write_lists()
        jobs = [(self.training(one), self.model(one)) for one in row.networks if not self.model(one).exists()]
        with ThreadPoolExecutor(self.parallel) as pool:
            trained = all(pool.map(lambda job: run_command(job[0], job[1].parent.with_suffix(".log"), end), jobs))
        if not trained:
            return False
        for number in range(len(row.commands)):
            log = self.out(name, number).with_suffix(".log")
            if not log.exists():
                if not run_command(self.command(name, row, number), log.with_suffix(".part"), end):
                    return False
                log.with_suffix(".part").replace(log)
        return True

    def bring_home(self, name: str, row: Row, out: Path) -> None:
        """Writes the epochs and reports of a row to one JSON."""
        record = read_record_file(out / f"{name}.json")
        for network in row.networks:
            log = self.model(network).parent / "log.jsonl"
            events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            epochs = [event for event in events if event["event"] == "epoch"]
            record[network] = {
                **origin(),
                "flags": TRAININGS[network].flags.split(),
                "epochs": epochs,
                "evaluations": [],
            }
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
            rest_s = max(0.0, min(end - time.monotonic(), 1e9))
            command = [sys.executable, "-m", *module]
            code = subprocess.run(command, stdout=file, stderr=file, cwd=PROJECT, timeout=rest_s).returncode
        except subprocess.TimeoutExpired:
            return False
    if code:
        print(f"exit code {code}; see {log}", file=sys.stderr)
    return code == 0
