"""`steadyseg bench`: whole steps, their parts and their baselines, timed in turn in one run."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from steadyseg.app.console import Console
from steadyseg.app.report_file import check_place, write_json
from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions, mode_title
from steadyseg.core.picture_size import network_size
from steadyseg.core.system.machine import available_cpus, cpu_name
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.export.file.sessions import read_openvino
from steadyseg.export.file.subgraph import network_of
from steadyseg.runtime.choose import RunOptions, choose
from steadyseg.runtime.networks import FrameNetwork, OnnxRuntimeNetwork, OpenVinoNetwork
from steadyseg.runtime.number_format import resolve_precision
from steadyseg.runtime.open_model import is_graph, open_checkpoint, open_segmenter, refuse_classifier
from steadyseg.studies.harness.machine import load_average, peak_rss_bytes
from steadyseg.studies.harness.networks import pass_gflops
from steadyseg.studies.performance.backends import open_backends
from steadyseg.studies.performance.baselines import NaiveDeque
from steadyseg.studies.performance.clip import Clip, open_clip, street_clip
from steadyseg.studies.performance.flags import BenchJob
from steadyseg.studies.performance.machine import matrix_rates, versions
from steadyseg.studies.performance.report import arithmetic_record, print_bench, ratios_record, rows_record
from steadyseg.studies.performance.rows import (
    DROPOUT_ROWS,
    GRAPH_ROWS,
    ROWS,
    SINGLE_PROCESS,
    CheckpointRows,
    chosen_rows,
    graph_row,
)
from steadyseg.studies.performance.timing import Budget, Row, Timing, measure
from steadyseg.studies.performance.timing import Progress as Step
from steadyseg.studies.performance.variants import Subject

BUSY = 0.5
"""Load per core of the machine above which a note is due: calls then wait for their turn, 4 ms and more each time."""
REDRAW_S = 1.0
"""Seconds between two redraws of the progress line, between calls: a redrawing thread would run into the timings."""


def run_bench(job: BenchJob) -> int:
    """Checks the flags, measures, prints and writes; a target that is not met changes nothing about the exit code."""
    if job.report:
        check_place(job.report, overwrite=job.overwrite)
    load = load_average()  # before anything of ours runs
    if not 0 < job.row_seconds <= 3600:
        raise InputError(f"--config row_seconds must lie above 0 and be at most 3600, got {job.row_seconds}")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(prefix="steadyseg-bench-") as folder:
        record = (bench_graph if is_graph(job.model) else bench_checkpoint)(job, Path(folder))
    record["load_average"] = load
    if load is not None and load > BUSY * (os.cpu_count() or 1):
        record["notes"].append(
            f"other processes were busy (load {load:.1f} at the start): do not compare these figures"
        )
    if job.report:
        write_json(job.report, record)
    print_bench(record, Console())
    return 0


def bench_checkpoint(job: BenchJob, folder: Path) -> dict[str, Any]:
    """All rows of a pretrained checkpoint or a .safetensors file."""
    refuse_classifier(open_checkpoint(job.model).meta, job.model)
    subject = Subject(job.model, job.size)
    missing = {} if subject.has_dropout else dict.fromkeys(DROPOUT_ROWS, "the network has no dropout")
    names = chosen_rows(job.only, tuple(ROWS), missing)
    run = RunOptions(**vars(job.compute), size=job.size)
    chosen, number, why = choose(subject.model, MethodOptions(mode="dnn").resolve(subject.meta), run)
    with announce() as say:
        say("making the clip")
        clip = clip_of(job, folder, network_size(subject.meta.height, subject.meta.width, subject.height))
        size = network_size(clip.height, clip.width, subject.height)
        say("converting the network")
        backend, torch_backend = open_backends(subject, size, chosen, number, job.compute)
        rows = CheckpointRows(backend, torch_backend, clip, size, folder, job.model, subject.height)
        built = []
        for name in names:
            say(f"preparing {name}")
            built.append(rows.build(name))
        timings = time_rows(built, job.row_seconds, say)
        say("the machine's own rate")
        # Products are of floats: int8 is compared with products of the format that it replaced.
        floats = resolve_precision("auto") if backend.precision == "int8" else backend.precision
        rates = matrix_rates(job.row_seconds, floats, backend.device, on_openvino=chosen == "openvino")
    gflops = {
        name: pass_gflops(subject.network(SINGLE_PROCESS[name]), size) for name in names if name in SINGLE_PROCESS
    }
    done = rows_record(timings)
    rate_of = f"{backend.name.split()[0]} {floats}"
    notes = [f"left out: {', '.join(missing)} (the network has no dropout)"] if missing and not job.only else []
    if not subject.has_smoothing:
        notes.append("the network has no spatial smoothing: bare and bare_plain are the same")
    return {
        **facts(job, clip, size, backend.name, backend.device, backend.precision, why),
        "notes": notes,
        "rows": done,
        "ratios": ratios_record(done, Path(job.model).stem),
        "arithmetic": arithmetic_record(done, gflops, rates, rate_of),
        "memory": memory_record(backend.state_bytes(), rows.naive),
    }


def bench_graph(job: BenchJob, folder: Path) -> dict[str, Any]:
    """The rows that a graph file can have: it holds one mode and one size."""
    file = read_onnx(Path(job.model))
    names = chosen_rows(job.only, GRAPH_ROWS, {})
    segmenter = open_segmenter(
        job.model,
        size=job.size,
        backend=job.compute.backend,
        precision=job.compute.precision,
        device=job.compute.device,
    )
    size = (file.meta.height, file.meta.width)
    precision = segmenter.backend.split()[-1]
    network: FrameNetwork | None = None
    if file.meta.method.samples == 1 and segmenter.device == "cpu":
        data = network_of(file.model, *size).SerializeToString()
        is_openvino = segmenter.backend.startswith("openvino")
        network = (
            OpenVinoNetwork(read_openvino(data), precision) if is_openvino else OnnxRuntimeNetwork(data, precision)
        )
    elif not job.only:
        names.remove("bare")
    with announce() as say:
        say("making the clip")
        clip = clip_of(job, folder, size)
        built = [graph_row(name, segmenter, network, clip, size, folder) for name in names]
        timings = time_rows(built, job.row_seconds, say)
    done = rows_record(timings)
    mode = f"the file computes {mode_title(segmenter.method)}"
    return {
        **facts(job, clip, size, segmenter.backend, segmenter.device, precision, segmenter.why),
        "notes": [mode],
        "rows": done,
        "ratios": ratios_record(done, Path(job.model).stem),
        "arithmetic": None,
        "memory": memory_record(None, None),
    }


def clip_of(job: BenchJob, folder: Path, size: tuple[int, int]) -> Clip:
    if job.source is None:
        return street_clip(folder, size)
    return open_clip(job.source, str(job.source))


def time_rows(rows: list[Row], seconds: float, say: Callable[..., None]) -> list[Timing]:
    def report(step: Step) -> None:
        if step.is_result:
            Console(stderr=True).print(step.row, highlight=False)
        say(step.row, step.done, step.total)

    return measure(rows, Budget(seconds=seconds), progress=report)


def facts(
    job: BenchJob, clip: Clip, size: tuple[int, int], backend: str, device: str, precision: str, why: str
) -> dict[str, Any]:
    """Machine, versions and settings that the figures depend on."""
    return {
        "model": job.model,
        "size": [size[1], size[0]],
        "backend": backend,
        "device": device,
        "precision": precision,
        "why": why,
        "cpu": cpu_name(),
        "cores": available_cpus(),
        "torch_threads": torch.get_num_threads(),
        "versions": versions(),
        "seconds_per_row": job.row_seconds,
        "clip": {"name": clip.name, "width": clip.width, "height": clip.height, "frames": clip.frames},
    }


def memory_record(state_bytes: int | None, naive: NaiveDeque | None) -> dict[str, int | None]:
    """Memory in bytes, or None where it is unknown or its row was not run."""
    return {
        "peak_rss_bytes": peak_rss_bytes(),
        "state_bytes": state_bytes,
        "naive_deque_bytes": None if naive is None else naive.state_bytes,
    }


@contextmanager
def announce() -> Iterator[Callable[..., None]]:
    """A line on stderr that says what is under way, with the time left where the number of calls is known."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn("ETA"), TimeRemainingColumn())
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("")
        last = [0.0]

        def say(what: str, done: int = 0, total: int = 0) -> None:
            words = f"{what} ({done}/{total})" if total else what
            progress.update(task, description=words, completed=done or None, total=total or None)
            if time.monotonic() - last[0] >= REDRAW_S:
                last[0] = time.monotonic()
                progress.refresh()

        yield say
