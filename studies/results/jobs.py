"""A job measures all rows of one network, or of the ensemble, in a process of its own."""

import multiprocessing
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.evaluation.temperature import TemperatureFit
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.calibrate import read_class_weights
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.moving_stills import CLIP_FRAMES
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.harness.study import origin
from steadyseg.studies.results.matrix import COMPARED, CONTROL, MEMBERS, PRETRAINED, Network, Pretrained, rule_job
from steadyseg.studies.results.parts import Parts
from steadyseg.studies.results.rows import FIT_EVERY, Fits, fit, measure, measure_rule, unseen_stills
from steadyseg.studies.results.sweep import Subject

VERSION = 3
"""Raised whenever what a row means changes: then all are measured again."""
PROTOCOLS = ("stills", "moving-stills", "stream")


@dataclass(frozen=True)
class Job:
    """All rows of one network, or of the ensemble."""

    name: str
    networks: tuple[Network | Pretrained, ...]
    as_trained: tuple[str, ...] = ()
    """Protocols where it is only measured at temperature 1, with nothing fitted; none: all, with all that is fitted."""

    @property
    def has_dropout(self) -> bool:
        return self.networks[0].dropout


def all_jobs() -> list[Job]:
    ruled: list[Network | Pretrained] = [*PRETRAINED, *COMPARED, *MEMBERS[1:]]
    seeds = [Job(network.name, (network,), ("stills", "stream")) for network in MEMBERS[1:]]
    control = Job(CONTROL.name, (CONTROL,), ("stream",))  # the stills it was trained without are near to nothing else
    return [
        *(Job(network.name, (network,)) for network in COMPARED),
        Job("paper-ensemble", tuple(MEMBERS)),
        *seeds,
        control,
        *(Job(rule_job(network), (network,), ("changes", "unseen")) for network in ruled),
        Job(rule_job(CONTROL), (CONTROL,), ("changes",)),
    ]


def measure_job(job: Job, data: Path, parts: Parts, ticks: Any) -> dict[str, Any]:
    """Rows by protocol, and what was fitted on which split, in a process of its own."""
    torch.set_num_threads(1)
    keep_freed_memory()  # a tenth of the time would be page faults
    subject = open_subject(job, ticks)

    def fitted(protocol: str) -> Fits:
        return fits_of(parts.get(f"fit-{protocol}", lambda: fits_record(fit(subject, protocol, data, job.has_dropout))))

    def rows(protocol: str, fits: Fits) -> dict[str, Any]:
        if protocol in PROTOCOLS:
            return parts.get(protocol, lambda: measure(subject, protocol, data, fits, job.has_dropout))
        return parts.get(protocol, lambda: measure_rule(subject, protocol, data, job.has_dropout))

    if job.as_trained:
        return {"fits": {}, **{protocol: rows(protocol, Fits()) for protocol in job.as_trained}}
    on_val, on_test = fitted("stream"), fitted("moving-stills")
    if job.has_dropout:
        on_test.temperatures |= fitted("stills").temperatures
    return {
        "fits": {name: fits_record(fits) for name, fits in {"val": on_val, "test": on_test}.items()},
        **{protocol: rows(protocol, on_test if protocol == "stream" else on_val) for protocol in PROTOCOLS},
    }


def open_subject(job: Job, ticks: Any) -> Subject:
    """Opens the job's networks; each frame that they see is reported to `ticks`."""
    models = [read_segmenter(network.file) for network in job.networks]
    meta = models[0].meta
    normalize = Normalize(meta.mean, meta.std)

    def preprocess(frame: torch.Tensor) -> torch.Tensor:
        exit_with_parent()
        ticks.put(1)
        return normalize(resize(frame.permute(0, 3, 1, 2), (meta.height, meta.width)))

    networks = [model.network().to(memory_format=torch.channels_last) for model in models]
    stride = getattr(networks[0], "head_stride", 1)
    precision = job.networks[0].precision
    return Subject(networks, preprocess, meta.classes, read_class_weights(meta.training), precision, stride)


def exit_with_parent() -> None:
    """Ends this process when its parent is gone: a killed `make results` must not leave workers behind."""
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)


def fits_record(fits: Fits) -> dict[str, Any]:
    return {
        "temperatures": {name: asdict(found) for name, found in fits.temperatures.items()},
        "tau": {mode: smoothing.tau for mode, smoothing in fits.memories.items()},
        "sets": fits.sets,
    }


def fits_of(record: dict[str, Any]) -> Fits:
    """Reads the fits from the form in which a job's parts keep them."""
    return Fits(
        {name: TemperatureFit(**found) for name, found in record["temperatures"].items()},
        {mode: TemporalSmoothing(tau) for mode, tau in record["tau"].items()},
        record["sets"],
    )


def frame_count(data: Path, job: Job, parts: Parts) -> int:
    """Frames that a job still has to walk over."""
    stills, stream = len(open_split(data, "test")), len(open_split(data, "val"))
    frames = {
        "fit-stream": stream,
        "fit-moving-stills": len(range(0, stills, FIT_EVERY)) * CLIP_FRAMES,
        "fit-stills": stills if job.has_dropout else 0,
        "stills": stills,
        "moving-stills": stills * CLIP_FRAMES,
        "stream": stream,
        "changes": stream,
        "unseen": len(unseen_stills(data)) * CLIP_FRAMES,
    }
    return sum(frames[name] for name in job.as_trained or frames if not parts.has(name))


def job_digest(job: Job, data: str) -> str:
    """It changes with the data, the weights and what a row means."""
    return "-".join([f"v{VERSION}", data, *(network.digest() for network in job.networks)])


def rule_digest(network: str, data: str) -> str:
    """The digest of an included network's rows of the default rule."""
    return next(job_digest(job, data) for job in all_jobs() if job.name == f"{network} default rule")


def about(job: Job) -> dict[str, Any]:
    """Describes the origin of the rows."""
    return {**origin(), "trained_by": [network.command for network in job.networks], "seed": 0}
