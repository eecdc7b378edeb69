"""A job measures all rows of one network, or of the ensemble, in a process of its own."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.origin import origin
from benchmarks.results.matrix import CONTROL, FOUR, MEMBERS, Network
from benchmarks.results.rows import FIT_EVERY, Fits, fit, measure
from benchmarks.results.sweep import Subject
from core.allocator import keep_freed_memory
from core.preprocess import Normalize, resize
from seg.camvid import open_split
from seg.class_weights import recorded_class_weights
from seg.moving_stills import CLIP_FRAMES
from seg.torch_segmenter import open_network

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


def measure_job(job: Job, data: Path, ticks: Any) -> dict[str, Any]:
    """Rows by protocol, and what was fitted on which split, in a process of its own."""
    torch.set_num_threads(1)
    keep_freed_memory()  # a tenth of the time would be page faults
    opened = [open_network(network.file) for network in job.networks]
    meta = opened[0][1]
    normalize = Normalize(meta.mean, meta.std)

    def preprocess(frame: torch.Tensor) -> torch.Tensor:
        ticks.put(1)
        return normalize(resize(frame.permute(0, 3, 1, 2), (meta.height, meta.width)))

    networks = [network.eval().to(memory_format=torch.channels_last) for network, _ in opened]
    subject = Subject(networks, preprocess, meta.classes, recorded_class_weights(meta.training))
    on_val = fit(subject, "stream", data, job.has_dropout)
    on_moving = fit(subject, "moving-stills", data, job.has_dropout)
    if job.has_dropout:
        on_moving.temperatures |= fit(subject, "stills", data, job.has_dropout).temperatures
    return {
        "fits": {name: fits_record(fits) for name, fits in {"val": on_val, "test": on_moving}.items()},
        **{
            protocol: measure(subject, protocol, data, on_moving if protocol == "stream" else on_val, job.has_dropout)
            for protocol in PROTOCOLS
        },
    }


def fits_record(fits: Fits) -> dict[str, Any]:
    return {
        "temperatures": {name: asdict(found) for name, found in fits.temperatures.items()},
        "tau": {mode: smoothing.tau for mode, smoothing in fits.memories.items()},
        "sets": fits.sets,
    }


def frame_count(data: Path, job: Job) -> int:
    """Frames that a job walks over: three protocols, and the fits on them."""
    stills, stream = len(open_split(data, "test")), len(open_split(data, "val"))
    moving, fitted = stills * CLIP_FRAMES, len(range(0, stills, FIT_EVERY)) * CLIP_FRAMES
    return 2 * stream + moving + fitted + stills * (2 if job.has_dropout else 1)


def job_digest(job: Job, data: str) -> str:
    return "-".join([data, *(network.digest() for network in job.networks)])


def about(job: Job) -> dict[str, Any]:
    """Where the rows come from."""
    return {**origin(), "trained_by": [network.command for network in job.networks], "seed": 0}
