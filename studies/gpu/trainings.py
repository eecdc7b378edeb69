"""The queue that trains and measures, and what goes home of it. A stopped queue goes on where it stopped."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME
from steadyseg.studies.harness.study import PROJECT, origin, read_record_file, write_record

TOKEN = re.compile(r"{(.+?)}")
"""In a flag: {data} is the queue's data, {NAME} the model of that job."""
GRACE_S = 60
"""A stopped training ends its step and its workers; the epoch under way is lost."""


@dataclass(frozen=True)
class Job:
    """One training and what is measured of it."""

    name: str
    flags: tuple[str, ...]
    """Words after `steadyseg train` but --run and --device."""
    evaluations: tuple[tuple[str, ...], ...] = ()
    """Flags of `steadyseg evaluate`, a file of figures for each."""

    def needs(self) -> list[str]:
        """The jobs whose models its flags name."""
        return [name for flag in self.flags for name in TOKEN.findall(flag) if name != "data"]


@dataclass(frozen=True)
class Queue:
    """Where jobs run, and for how long."""

    data: Path
    runs: Path
    """Folder of run folders, figures and logs."""
    device: str = "auto"
    minutes: float = float("inf")
    """After these a training is stopped; the next run of the queue resumes it."""
    parallel: int = 1

    def model(self, name: str) -> Path:
        return self.runs.absolute() / name / MODEL_NAME

    def figures(self, job: Job) -> list[Path]:
        """The file of each evaluation."""
        return [self.runs.absolute() / f"{job.name}-{i}.json" for i in range(len(job.evaluations))]

    def is_done(self, job: Job) -> bool:
        return self.model(job.name).exists() and all(file.exists() for file in self.figures(job))

    def words(self, job: Job) -> list[str]:
        """Words after `steadyseg`: begin or resume the training, or make its first missing figures."""
        model, device = self.model(job.name), ["--device", self.device]
        if model.exists():
            number, file = next((i, file) for i, file in enumerate(self.figures(job)) if not file.exists())
            data = ["--data", str(self.data.absolute())]
            return ["evaluate", str(model), *data, *device, *job.evaluations[number], "--report", str(file)]
        resume = ["--resume"] if (model.parent / CONFIG_NAME).exists() else []
        return ["train", *map(self._filled, job.flags), "--run", str(model.parent), *device, *resume]

    def _filled(self, flag: str) -> str:
        """The flag with its tokens replaced."""
        data = str(self.data.absolute())
        return TOKEN.sub(lambda found: data if found[1] == "data" else str(self.model(found[1])), flag)

    def start(self, job: Job) -> "subprocess.Popen[bytes]":
        """Starts the job's next command; its output goes to RUNS/NAME.log."""
        self.runs.mkdir(parents=True, exist_ok=True)
        words = self.words(job)
        print(f"{job.name}: steadyseg {' '.join(words)}", file=sys.stderr, flush=True)
        with (self.runs / f"{job.name}.log").open("ab") as log:
            command = [sys.executable, "-m", "steadyseg.app.cli", *words]
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=PROJECT)


def run_jobs(jobs: Sequence[Job], queue: Queue) -> list[str]:
    """Trains and measures until the queue's minutes are over; returns the names of the jobs that are not done."""
    end = time.monotonic() + 60 * queue.minutes
    waiting = [job for job in jobs if not queue.is_done(job)]
    running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
    try:
        while (waiting or running) and time.monotonic() < end:
            ready = [job for job in waiting if all(queue.model(name).exists() for name in job.needs())]
            for job in ready[: queue.parallel - len(running)]:
                waiting.remove(job)
                running[job.name] = (job, queue.start(job))
            if not running:
                break  # what is left needs a training that failed
            time.sleep(0.2)
            waiting = finished(running, queue) + waiting
    finally:
        stop([process for _, process in running.values()])
    return [job.name for job in jobs if not queue.is_done(job)]


def finished(running: dict[str, tuple[Job, "subprocess.Popen[bytes]"]], queue: Queue) -> list[Job]:
    """Takes out what has ended; returns the jobs that have more to do, and prints the failed ones."""
    again = []
    for job, process in list(running.values()):
        if process.poll() is None:
            continue
        del running[job.name]
        if process.returncode:
            log = queue.runs / f"{job.name}.log"
            print(f"{job.name}: exit code {process.returncode}; see {log}", file=sys.stderr)
        elif not queue.is_done(job):
            again.append(job)
    return again


def stop(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Interrupts the commands, and kills one that does not end: the last whole epoch is on disk."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    for process in processes:
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()


def bring_home(jobs: Sequence[Job], queue: Queue, out: Path, *, checkpoints: bool) -> None:
    """Adds all figures and epochs to one JSON for all blocks, and copies the measured checkpoints if asked."""
    home = out / "trainings.json"
    record = read_record_file(home)
    for job in jobs:
        model = queue.model(job.name)
        log = model.parent / "log.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        record[job.name] = {
            **origin(),
            "flags": job.flags,
            "epochs": [event for event in events if event["event"] == "epoch"],
            "evaluations": [json.loads(file.read_text()) for file in queue.figures(job) if file.exists()],
        }
        if checkpoints and job.evaluations and model.exists():
            (out / f"{job.name}.safetensors").write_bytes(model.read_bytes())
    write_record(home, record)
