"""Measures a batch against loops, batches with killed workers, and many cameras; writes docs/studies/scale.

    python -m steadyseg.studies.scale throughput|throughput-ray [--clips 1000]
    python -m steadyseg.studies.scale kills [--clips 1000] [--engine local ray]
    python -m steadyseg.studies.scale cameras|capacity|hour [--cameras 50] [--seconds 300]
    python -m steadyseg.studies.scale start

Every study is measured alone and keeps its command, its size and the commit beside its figures. --data holds video/.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.system.files import write_atomic
from steadyseg.core.system.machine import cpu_name
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.machine import load_average
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, exit_code, origin
from steadyseg.studies.scale import cameras, kills, start, throughput
from steadyseg.studies.scale.clips import make_clips
from steadyseg.studies.scale.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
PAGE = PAGES / "scale"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=tuple(TABLES))
    parser.add_argument("--clips", type=int, default=1000)
    parser.add_argument(
        "--cameras", type=int, default=50, help="number of cameras; of capacity the largest that is tried"
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--engine", nargs="+", choices=("local", "ray"), default=["local", "ray"])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    return exit_code("scale", lambda: run(parser.parse_args()))


def run(given: argparse.Namespace) -> None:
    place = PAGE / "record.json"
    record = json.loads(place.read_text()) if place.exists() else {}
    load = load_average()
    measured = round_figures(measure(given))
    command = " ".join(["python -m steadyseg.studies.scale", *sys.argv[1:]])
    record[given.study] = {"command": command, **origin(), "cpu": processor(), "load_before": load, **measured}
    write_atomic(place, (json.dumps(record, indent=1) + "\n").encode())
    write_page("scale")


def processor() -> str:
    """Its name and the instructions that torch takes, which decide the speed."""
    return f"{cpu_name()} ({torch.backends.cpu.get_cpu_capability()})"


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """The figures of one study."""
    if given.study == "start":
        return start.measure()
    if given.study == "cameras":
        return cameras.watch(given.cameras, fps=5.0, sample_fps=1.0, seconds=given.seconds)
    if given.study == "hour":  # with novelty, which the others' network has not
        return cameras.watch(given.cameras, fps=5.0, sample_fps=1.0, seconds=given.seconds, model="camvid-realtime")
    if given.study == "capacity":
        return {"tried": cameras.max_that_hold(15.0, given.seconds, given.cameras)}
    clips = make_clips(ROOT / "runs" / "clips" / str(given.clips), given.clips, given.data / "video")
    if given.study in ("throughput", "throughput-ray"):
        return throughput.measure(clips, ("local",) if given.study == "throughput" else ("ray",))
    return {engine: kills.measure(clips, engine) for engine in given.engine}


if __name__ == "__main__":
    sys.exit(main())
