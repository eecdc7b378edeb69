"""What goes home from a GPU: figures, epochs and checkpoints."""

import json
from collections.abc import Sequence
from pathlib import Path

from steadyseg.studies.harness.study import read_record_file, write_record
from steadyseg.studies.harness.trainings import Job, Queue


def bring_home(jobs: Sequence[Job], queue: Queue, out: Path, *, checkpoints: bool) -> None:
    """Adds all figures and epochs to one JSON for all blocks, and copies the measured checkpoints if asked."""
    home = out / "trainings.json"
    record = read_record_file(home)
    for job in jobs:
        model = queue.model(job.name)
        log = model.parent / "log.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        record[job.name] = {
            "flags": job.flags,
            "epochs": [event for event in events if event["event"] == "epoch"],
            "evaluations": [json.loads(file.read_text()) for file in queue.figures(job) if file.exists()],
        }
        if checkpoints and job.evaluations and model.exists():
            (out / f"{job.name}.safetensors").write_bytes(model.read_bytes())
    write_record(home, record)
