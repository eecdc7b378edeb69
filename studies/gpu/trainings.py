"""Blocks (b) and (c): trainings that go on block after block, several at a time, each measured when it is done."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyseg.core.system.files import write_atomic
from steadyseg.core.training.run_folder import CONFIG_NAME, MODEL_NAME

MODEL = re.compile(r"{(.+?)}")
"""The model of another job in a flag: {name}."""
GRACE_S = 60
"""A stopped training ends its step and its workers; the epoch under way is lost."""


@dataclass(frozen=True)
class Job:
    """One training and what is measured of it."""

    name: str
    flags: tuple[str, ...]
    """Flags of `train seg` but --data, --run and --device; {name} stands for the model of another job."""
    evaluations: tuple[tuple[str, ...], ...]
    """Flags of `evaluate`, a file of figures for each."""
    kept: bool = True
    """True if its checkpoint is copied back too (those of width 64 have 124 MB)."""
    data: str = "camvid"
    """The folder of that name, or `street`."""

    def rows(self) -> list[str]:
        """The training and each measurement of it, for a list."""
        return [self.name, *(f"{self.name}: evaluate {' '.join(flags)}" for flags in self.evaluations)]

    def needs(self) -> list[str]:
        """The jobs whose models its flags name."""
        return [name for flag in self.flags for name in MODEL.findall(flag)]


@dataclass(frozen=True)
class Block:
    """One command's share of the work."""

    camvid: Path
    runs: Path
    """Folder of states and models between blocks."""
    out: Path
    """Folder that is copied back: figures, logs of the epochs, small checkpoints."""
    device: str
    minutes: float
    parallel: int


def run_block(jobs: Sequence[Job], block: Block) -> list[str]:
    """Trains and measures for so many minutes; returns the names of the jobs that are not done yet."""
    end = time.monotonic() + 60 * block.minutes
    block.out.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not is_done(job, block)]
    running: dict[str, Any] = {}
    while (waiting or running) and time.monotonic() < end:
        while len(running) < block.parallel and (ready := [job for job in waiting if can_start(job, block)]):
            job = ready[0]
            waiting.remove(job)
            running[job.name] = (job, start(job, block))
        if not running:
            break  # what is left needs a training that failed
        for job, process in list(running.values()):
            if process.poll() is not None:
                del running[job.name]
                if process.returncode == 0 and not is_done(job, block):  # trained; now measure
                    waiting.insert(0, job)
                elif process.returncode:
                    print(f"{job.name}: exit code {process.returncode}; see {log_of(job, block)}", file=sys.stderr)
        time.sleep(0.2)
    for _, process in running.values():
        process.send_signal(signal.SIGINT)
    for _, process in running.values():
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()  # the last whole epoch is on disk
    bring_home(jobs, block)
    return [job.name for job in jobs if not is_done(job, block)]


def start(job: Job, block: Block) -> "subprocess.Popen[bytes]":
    """Starts or resumes the training, or starts its first missing measurement."""
    run = block.runs / job.name
    if not (run / MODEL_NAME).exists():
        resume = ["--resume"] if (run / CONFIG_NAME).exists() else []
        data = "street" if job.data == "street" else block.camvid
        flags = [MODEL.sub(lambda found: str(block.runs / found[1] / MODEL_NAME), flag) for flag in job.flags]
        words = ["train", "seg", "--data", data, "--run", run, "--device", block.device, *flags, *resume]
    else:
        number = next(i for i in range(len(job.evaluations)) if not figures_of(job, i, block).exists())
        words = [
            "evaluate",
            run / MODEL_NAME,
            "--data",
            block.camvid,
            "--device",
            block.device,
            *job.evaluations[number],
            "--report",
            figures_of(job, number, block),
        ]
    block.runs.mkdir(parents=True, exist_ok=True)
    with log_of(job, block).open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", "steadyseg.app.cli", *map(str, words)], stdout=log, stderr=log)


def can_start(job: Job, block: Block) -> bool:
    """True if the models that it needs are there."""
    return all((block.runs / name / MODEL_NAME).exists() for name in job.needs())


def is_done(job: Job, block: Block) -> bool:
    figures = [figures_of(job, i, block) for i in range(len(job.evaluations))]
    return (block.runs / job.name / MODEL_NAME).exists() and all(file.exists() for file in figures)


def figures_of(job: Job, number: int, block: Block) -> Path:
    return block.runs / f"{job.name}-{number}.json"


def log_of(job: Job, block: Block) -> Path:
    return block.runs / f"{job.name}.log"


def bring_home(jobs: Sequence[Job], block: Block) -> None:
    """Adds all figures and epochs to one JSON for all blocks, and copies the checkpoints that are small enough."""
    home = block.out / "trainings.json"
    record = json.loads(home.read_text()) if home.exists() else {}
    for job in jobs:
        run = block.runs / job.name
        files = [figures_of(job, i, block) for i in range(len(job.evaluations))]
        log = run / "log.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        record[job.name] = {
            "flags": job.flags,
            "epochs": [event for event in events if event["event"] == "epoch"],
            "evaluations": [json.loads(file.read_text()) for file in files if file.exists()],
        }
        if job.kept and (run / MODEL_NAME).exists():
            (block.out / f"{job.name}.safetensors").write_bytes((run / MODEL_NAME).read_bytes())
    write_atomic(home, (json.dumps(record, indent=1) + "\n").encode())
