"""Trainings of the published network in its four forms, and their queue. A stopped queue goes on where it stopped."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME
from steadyseg.studies.harness.study import PROJECT, origin, read_record_file, write_record

STILLS = ("--split", "test", "--protocol", "stills")
STREAM = ("--split", "val", "--protocol", "stream")
PUBLISHED = ("--motion", "off", "--tau", "1.25")
HALF_RATE = ("--motion", "off", "--tau", "0.625")
"""The published decay in frames, and the same decay in seconds: val has 15 Hz, and the published stream had 30 Hz."""
SEEDS = (0, 1)
FORMS = {"plain": (False, False), "smooth": (False, True), "mc": (True, False), "mc-smooth": (True, True)}
"""(dropout, smoothing)"""


@dataclass(frozen=True)
class Job:
    """One training and what is measured of it."""

    name: str
    flags: tuple[str, ...]
    """Words after `steadyseg train` but --data, --run and --device."""
    evaluations: tuple[tuple[str, ...], ...] = ()
    """Flags of `steadyseg evaluate`, a file of figures for each."""


def paper_jobs(size: int = 360, width: int = 64, rate: float = 0.5) -> list[Job]:
    """The published training in its four forms: 130 epochs of all 367 pictures, 30 passes where there is dropout.

    BatchNorm comes before ReLU, and each form has two seeds. On a CPU the size (height in pixels) and the width are
    smaller. So is the rate of dropout: at a quarter of the width, 0.5 leaves too little to learn with."""
    return [paper_job(size, width, rate, name, seed) for seed in SEEDS for name in FORMS]


def paper_job(size: int, width: int, rate: float, name: str, seed: int) -> Job:
    dropout, smoothing = FORMS[name]
    form = f"--dropout {rate if dropout else 0} --{'' if smoothing else 'no-'}smoothing"
    flags = (
        *("seg", "--preset", "replica", "--channels", str(width), "--hold-out", "none", "--seed", str(seed)),
        *("--size", str(size), *form.split(), "--config", "order=conv-bn-relu", "class_weights=median-frequency-all"),
    )
    kinds = [("dnn", "vq-dnn"), *([("bnn", "vq-bnn")] if dropout else [])]
    rows = [
        (*split, "--mode", mode)
        for one, mean in kinds
        for split, mode in ((STILLS, one), (STREAM, one), ((*STREAM, *PUBLISHED), mean), ((*STREAM, *HALF_RATE), mean))
    ]
    return Job(f"replica{size}-{name}-{seed}", flags, tuple(rows))


@dataclass(frozen=True)
class Queue:
    """Where jobs run, and for how long."""

    data: Path
    runs: Path
    """Folder of run folders, figures and logs."""
    device: str = "auto"
    minutes: float = float("inf")
    """After these a training is killed; the next run of the queue resumes it after its last whole epoch."""
    parallel: int = 1

    def model(self, job: Job) -> Path:
        return self.runs.absolute() / job.name / MODEL_NAME

    def figures(self, job: Job) -> list[Path]:
        """The file of each evaluation."""
        return [self.runs.absolute() / f"{job.name}-{i}.json" for i in range(len(job.evaluations))]

    def words(self, job: Job) -> list[str]:
        """Words after `steadyseg`: begin or resume the training, or make its first missing figures; none if done."""
        model, where = self.model(job), ["--data", str(self.data.absolute()), "--device", self.device]
        if model.exists():
            for flags, file in zip(job.evaluations, self.figures(job), strict=True):
                if not file.exists():
                    return ["evaluate", str(model), *where, *flags, "--report", str(file)]
            return []
        resume = ["--resume"] if (model.parent / CONFIG_NAME).exists() else []
        return ["train", *job.flags, *where, "--run", str(model.parent), *resume]

    def run(self, job: Job, end: float) -> None:
        """Runs the job's commands until it is done, one fails, or the time is `end`; output goes to RUNS/NAME.log."""
        with (self.runs / f"{job.name}.log").open("ab") as log:
            while (words := self.words(job)) and (rest_s := end - time.monotonic()) > 0:
                print(f"{job.name}: steadyseg {' '.join(words)}", file=sys.stderr, flush=True)
                command = [sys.executable, "-m", "steadyseg.app.cli", *words]
                try:
                    subprocess.run(command, stdout=log, stderr=log, cwd=PROJECT, timeout=rest_s, check=True)
                except subprocess.TimeoutExpired:
                    return
                except subprocess.CalledProcessError as error:
                    print(f"{job.name}: exit code {error.returncode}; see {log.name}", file=sys.stderr)
                    return


def run_jobs(jobs: Sequence[Job], queue: Queue) -> list[str]:
    """Trains and measures until the queue's minutes are over; returns the names of the jobs that are not done."""
    queue.runs.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * queue.minutes
    with ThreadPoolExecutor(queue.parallel) as pool:
        list(pool.map(lambda job: queue.run(job, end), jobs))
    return [job.name for job in jobs if queue.words(job)]


def bring_home(jobs: Sequence[Job], queue: Queue, out: Path) -> None:
    """Adds all figures and epochs to one JSON for all blocks."""
    home = out / "trainings.json"
    record = read_record_file(home)
    for job in jobs:
        log = queue.model(job).parent / "log.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        record[job.name] = {
            **origin(),
            "flags": job.flags,
            "epochs": [event for event in events if event["event"] == "epoch"],
            "evaluations": [json.loads(file.read_text()) for file in queue.figures(job) if file.exists()],
        }
    write_record(home, record)
