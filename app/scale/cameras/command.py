"""`steadyseg cameras`: segments many streams at once, each with its own temporal state, and restarts what fails."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from rich.live import Live
from rich.table import Table
from rich.text import Text

from steadyseg.app.console import Console
from steadyseg.app.report_file import check_place, write_json
from steadyseg.app.scale.cameras.alarms import Alarms, AlarmWriter
from steadyseg.app.scale.cameras.camera_file import Camera, CameraSet, read_cameras
from steadyseg.app.scale.cameras.metrics import MetricsServer, prometheus_text
from steadyseg.app.scale.cameras.state import CameraFigures
from steadyseg.app.scale.cameras.supervisor import Supervisor
from steadyseg.app.scale.cameras.worker import CameraWorker, Measured
from steadyseg.app.scale.engines.engine import Answer, Engine
from steadyseg.app.scale.engines.local_engine import open_engine
from steadyseg.app.scale.flags import CamerasJob
from steadyseg.app.sources.ffmpeg import MAX_DECODED
from steadyseg.core.errors import CheckFailed, InputError

COLUMNS = ("camera", "frames", "age s\nsilent s", "dropped\nrestarts", "gap s", "entropy\nfamiliar")


def run_cameras(job: CamerasJob) -> int:
    """Runs until Ctrl-C (exit code 130); the report then holds the metrics of every camera."""
    check_place(job.report, overwrite=job.overwrite)
    if job.workers is not None and not 1 <= job.workers <= 10_000:
        raise InputError(f"--workers must lie in 1..10000, got {job.workers}")
    watched = read_cameras(job.cameras)
    options = watched.options
    console = Console(stderr=True)

    def tell(line: str) -> None:
        console.print(f"warning: {line}", soft_wrap=True)

    with (
        contextlib.closing(AlarmWriter(job.alarms, tell)) as writer,
        open_engine(job.ray, partial(CameraWorker, options), options.compute.device) as engine,
    ):
        one = measure(engine)
        placed = assign_cameras(watched.cameras, job.workers or engine.most(one.memory_bytes))
        tell_load(console, watched, placed, one)
        supervisor = Supervisor(engine, placed)

        def text() -> str:
            return prometheus_text(watched.cameras, supervisor.figures())

        with contextlib.closing(MetricsServer(job.host, job.port, text, supervisor.trouble, job.allow_host)) as server:
            console.print(f"figures: {server.address}")
            follow(watched, supervisor, Alarms(writer), console)
    figures = supervisor.figures()
    if job.report:
        record = {"step_ms": round(one.step_ms, 2), "workers": len(placed), "cameras": [asdict(one) for one in figures]}
        write_json(job.report, record)
    console.print(table_of(watched.cameras, figures))
    return 130


def measure(engine: Engine) -> Measured:
    """Measures the time and memory that a worker needs. Raises InputError if the network cannot be opened."""
    engine.grow(1)
    engine.call(0, "measure")
    answers: list[Answer] = []
    while not answers:
        answers = engine.wait(1.0)
    (answer,) = answers
    if answer.refusal:
        raise InputError(answer.refusal)
    if answer.lost:
        raise CheckFailed(f"no worker starts: {answer.lost}")
    found: Measured = answer.value
    return found


def tell_load(console: Console, watched: CameraSet, placed: list[tuple[Camera, ...]], one: Measured) -> None:
    """Prints the measured load and whether this machine can carry it."""
    shares = [sum(camera.load for camera in cameras) * one.step_ms / 1e3 for cameras in placed]
    console.print(
        f"{len(watched.cameras)} cameras on {len(placed)} workers; a frame takes {one.step_ms:.1f} ms: the busiest "
        f"worker needs {max(shares):.0%} of its time, decoding not counted"
    )
    if not one.has_familiarity:
        console.print(
            "no alarm says `ood` or `low_accuracy`: the model has no familiarity (steadyseg calibrate --familiarity)"
        )
    if max(shares) > 1:
        console.print(
            "warning: that is more than there is, frames will be dropped; sample fewer (sample_fps) or add workers"
        )


def follow(watched: CameraSet, supervisor: Supervisor, alarms: Alarms, console: Console) -> None:
    """Updates metrics and alarms once a second until an interruption; a terminal (stderr) shows a table."""
    cameras = {camera.name: camera for camera in watched.cameras}
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(console=console, auto_refresh=False, transient=True) as shown,
    ):
        for _ in supervisor.rounds():
            figures = supervisor.figures()
            for one in figures:
                alarms.look(cameras[one.state.name], one, time.time())
            alarms.out.flush()
            shown.update(table_of(watched.cameras, figures), refresh=True)


def table_of(cameras: tuple[Camera, ...], figures: list[CameraFigures]) -> Table:
    """A table with one line per camera; a failure is shown below the name, so that names fit into 80 columns."""
    table = Table(*COLUMNS)
    labels = {camera.name: camera.label for camera in cameras}
    for one in figures:
        state = one.state
        name = f"{state.name}\n  {labels[state.name]}" + (f"\n  {state.trouble}" if state.trouble else "")
        if state.sent_fps > MAX_DECODED:
            name += f"\n  sends {state.sent_fps:.0f} frames/s"
        table.add_row(
            Text(name, overflow="fold"),
            f"{state.frames}\n{state.fps:.1f}/s",
            f"{_short(state.age_s, 2)}\n{state.silent_s:.0f}",
            f"{state.dropped}\n{one.restarts}",
            f"{one.gap_s:.0f}",
            f"{_short(state.entropy, 3)}\n{_short(state.familiarity, 3)}",
        )
    return table


def _short(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def assign_cameras(cameras: Sequence[Camera], workers: int) -> list[tuple[Camera, ...]]:
    """Divides the cameras among workers by frames a second (`Camera.load`): the busiest camera first, each to the
    worker with the smallest load. No worker is left without a camera.

    The longest-processing-time rule: at worst 4/3 of the best division (Graham 1969).
    """
    placed: list[list[Camera]] = [[] for _ in range(min(workers, len(cameras)))]
    loads = [0.0] * len(placed)
    for camera in sorted(cameras, key=lambda one: -one.load):
        worker = loads.index(min(loads))
        placed[worker].append(camera)
        loads[worker] += camera.load
    return [tuple(one) for one in placed]
