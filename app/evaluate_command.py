"""`steadyseg evaluate`: runs the product's own loop over labelled images and reports what it measured."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from app.open_model import ExecutorName, PrecisionName, open_model
from app.report_file import check_place, write_json
from core.classes import CAMVID
from core.errors import InputError
from core.frame import Frame
from core.segmenter import Segmenter
from seg.camvid import open_split
from seg.evaluate import LiveMetrics, labelled_stills
from seg.options import ModeName
from seg.pipeline import segment

STREET_FRAMES = 100
TABLE_KEYS = (
    "nll", "accuracy", "miou", "ece", "ece_15", "ece_signed", "brier", "acc_90", "iou_90", "unc_90", "freq_90",
    "consistency",
)  # fmt: skip


@dataclass(frozen=True)
class EvaluateJob:
    """The flags of `steadyseg evaluate`."""

    model: str
    data: Path
    split: str
    protocol: str
    mode: ModeName | None
    samples: int | None
    tau: float | None
    window: int | None
    calibrated: bool | None
    seed: int
    frames: Path | None
    json: Path | None
    executor: ExecutorName
    precision: PrecisionName
    device: str


def run_evaluate(job: EvaluateJob) -> int:
    """Measures, prints a table, writes the JSON."""
    check_place(job.json)
    if job.protocol == "stills" and job.mode is not None:
        refuse_memory(job.mode)
    is_graph = job.model.endswith(".onnx")
    segmenter, why = open_model(
        job.model, mode=job.mode or (None if is_graph else "dnn"), samples=job.samples, tau=job.tau, window=job.window,
        calibrated=job.calibrated, executor="torch" if job.executor == "auto" and not is_graph else job.executor,
        precision=job.precision, device=job.device, keep_probs=True,
    )  # fmt: skip
    if job.protocol == "stills":
        refuse_memory(segmenter.method.mode)
    Console(stderr=True).print(f"executor: {segmenter.executor} on {segmenter.device} ({why})", soft_wrap=True)
    names, frame_hash, frames = labelled_frames(job, segmenter)
    result = measure(job, segmenter, frames, len(names))
    record = {**describe_run(job, segmenter), "frame_list_hash": frame_hash, **result, "frame_list": names}
    if job.json:
        write_json(job.json, record)
    print_result(record)
    return 0


def refuse_memory(mode: str) -> None:
    """Stills have no frames before them."""
    if mode.startswith("vq-"):
        raise InputError(
            f"mode {mode} averages over earlier frames and stills have none; use --protocol stream or "
            f"--mode {mode.removeprefix('vq-')}"
        )


def labelled_frames(job: EvaluateJob, segmenter: Segmenter) -> tuple[list[str], str, Iterator[Frame]]:
    """(names, their hash, frames) of what is measured."""
    if str(job.data) == "street":
        from seg.street import Street

        if segmenter.classes != CAMVID:
            raise InputError("the street is labelled with CamVid's 11 classes and this model has others")
        if job.frames:
            raise InputError("--frames names images of a data folder; the street has none")
        street = Street(seed=0, height=segmenter.method.height, width=segmenter.method.width)
        names = [f"street_0_{index:06d}" for index in range(STREET_FRAMES)]
        return names, f"street_0_{street.width}x{street.height}_{STREET_FRAMES}", street.frames(STREET_FRAMES)
    split = open_split(job.data, job.split, segmenter.classes)
    if job.frames:
        split = split.subset(read_names(job.frames))
    return [example.name for example in split.examples], split.frame_hash, split.frames()


def measure(job: EvaluateJob, segmenter: Segmenter, frames: Iterator[Frame], count: int) -> dict[str, Any]:
    """One pass; the seed is that of the dropout masks."""
    torch.manual_seed(job.seed)
    if job.protocol == "stills":
        frames = labelled_stills(frames)
    live = LiveMetrics(len(segmenter.classes), segmenter.classes.void)
    started = time.perf_counter()
    console = Console(stderr=True)
    for frame, maps in track(
        segment(frames, segmenter), f"{job.protocol} {segmenter.method.mode}", total=count, console=console
    ):
        live.update(frame, maps)
    seconds = time.perf_counter() - started
    fps = round(live.frames / seconds, 3)
    return {"frames": live.frames, **live.result(), "class_names": list(segmenter.classes.names), "fps": fps}


def describe_run(job: EvaluateJob, segmenter: Segmenter) -> dict[str, Any]:
    """What was run on what, so that the row can be made again."""
    return {
        "model": Path(job.model).name,
        "data": job.data.name,
        "split": None if str(job.data) == "street" else job.split,
        "protocol": job.protocol,
        "mode": segmenter.method.mode,
        "samples": segmenter.method.samples,
        "tau": segmenter.method.tau,
        "window": segmenter.method.window,
        "calibrated": segmenter.method.calibrated,
        "seed": job.seed,
        "executor": segmenter.executor,
        "device": segmenter.device,
        "torch": torch.__version__,
    }


def print_result(record: dict[str, Any]) -> None:
    """Two tables on stdout: the figures, and IoU per class."""
    console = Console()
    title = f"{record['model']}, {record['data']} {record['split'] or ''}, {record['frames']} frames, {record['protocol']}, "
    figures = Table(title=title + f"{record['mode']} x{record['samples']}", title_justify="left")
    figures.add_column("metric")
    figures.add_column("value", justify="right")
    for key in TABLE_KEYS:
        value = record.get(key)
        figures.add_row(key, "-" if value is None else f"{value:.4f}")
    console.print(figures)
    classes = Table(title="IoU per class", title_justify="left")
    classes.add_column("class")
    classes.add_column("iou", justify="right")
    for name, value in zip(record["class_names"], record["iou"], strict=True):
        classes.add_row(name, "-" if value is None else f"{value:.4f}")
    console.print(classes)


def read_names(path: Path) -> list[str]:
    """Base names from a text file, one a line; empty lines do not count."""
    try:
        names = [line.split()[0] for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the frame list cannot be read ({error})") from error
    if not names:
        raise InputError(f"{path}: the frame list is empty; expected one image name a line")
    return names
