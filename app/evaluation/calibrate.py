"""`steadyseg calibrate`: fits temperature and conformal thresholds on labelled frames and stores them in the checkpoint."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from app.evaluation.data import Chosen, LabelledData, refuse_memory
from app.find_model import is_classifier
from app.open_model import follows_motion
from core.checkpoint import load_checkpoint, load_weights, save_checkpoint
from core.device import choose_device
from core.errors import InputError
from core.evaluation.temperature import TemperatureFit
from seg.calibrate import ConformalFit, fit_temperature
from seg.class_weights import adjust_head
from seg.evaluate import LiveMetrics, seed_frames
from seg.options import ModeName
from seg.pipeline import segment
from seg.pretrained import find_checkpoint
from seg.torch_segmenter import TorchSegmenter, open_segmenter


@dataclass(frozen=True)
class CalibrateJob:
    """The flags of `steadyseg calibrate`."""

    model: str
    data: Path
    output: Path
    split: str
    protocol: str
    mode: ModeName | None
    samples: int | None
    tau: float | None
    window: int | None
    motion: bool | None
    coverage: float
    risk_class: str | None
    risk: float
    seed: int
    frames: Path | None
    overwrite: bool
    device: str
    undo_class_weights: bool


def run_calibrate(job: CalibrateJob) -> int:
    """Two passes over the frames: one for the temperature, one with it for everything that is read from probabilities."""
    check_flags(job)
    if is_classifier(job.model):
        from app.evaluation.calibrate_classifier import calibrate_classifier  # needs the job's type from here

        return calibrate_classifier(job)
    if job.split == "held-back":
        raise InputError("--split held-back is for image classifiers; give train, val or test")
    if job.protocol == "auto":
        job = dataclasses.replace(job, protocol="stream")
    mode: ModeName = job.mode or ("dnn" if job.protocol == "stills" else "vq-dnn")
    if job.protocol == "stills":
        refuse_memory(mode)
    segmenter = open_segmenter(
        job.model, mode=mode, samples=job.samples, tau=job.tau, window=job.window,
        motion=follows_motion(mode, job.window, job.motion),
        calibrated=False, device=choose_device(job.device), keep_probs=True,
    )  # fmt: skip
    if job.undo_class_weights:
        undo_class_weights(job, segmenter)
    class_id = find_class(job.risk_class, segmenter)
    chosen = open_data(job, segmenter)
    if job.protocol == "stills" and len(chosen.names) < 2:
        raise InputError(f"{len(chosen.names)} image is too little to fit on; give two or more")
    temperature = fit_temperature(segmenter.module, track_frames(job, chosen, "temperature"), segmenter.classes)
    segmenter.module.set_temperature(temperature.temperature)
    segmenter.reset()
    after = open_data(job, segmenter)
    live, conformal = LiveMetrics.of(segmenter.classes), ConformalFit(segmenter.classes.void_id, class_id)
    for frame, maps in segment(track_frames(job, after, "thresholds"), segmenter):
        live.update(frame, maps)
        conformal.update(frame, maps)
    record = {
        **describe_data(job, segmenter, chosen),
        **temperature_record(temperature, live.result()),
        "conformal": {"coverage": job.coverage, **conformal.scores.thresholds(job.coverage)},
    }
    if conformal.risk and job.risk_class:
        record["class_risk"] = conformal.risk.control(job.risk, job.risk_class)
    store(job, mode, record)
    print_fit(mode, record)
    print(job.output)
    return 0


def check_flags(job: CalibrateJob) -> None:
    """What can be refused before anything is opened."""
    if not 0.0 < job.coverage < 1.0:
        raise InputError(f"--coverage must lie between 0 and 1, got {job.coverage}")
    if not 0.0 < job.risk < 1.0:
        raise InputError(f"--risk must lie between 0 and 1, got {job.risk}")
    if job.model.endswith(".onnx"):
        raise InputError(
            f"{job.model}: a graph file has its temperature inside; calibrate the checkpoint and export again"
        )
    if job.output.suffix != ".safetensors":
        raise InputError(f"-o {job.output}: the name of a checkpoint ends in .safetensors")
    if not job.output.parent.is_dir():
        raise InputError(f"-o {job.output}: its folder does not exist; make it first")
    for path in (job.output, job.output.with_suffix(".json")):
        if path.exists() and not job.overwrite:
            raise InputError(f"{path}: exists already; choose another name or add --overwrite")


def find_class(name: str | None, segmenter: TorchSegmenter) -> int | None:
    """The id of a class; InputError with the list where there is none of that name."""
    if name is None:
        return None
    names = segmenter.classes.names
    if name not in names:
        raise InputError(f"--risk-class {name}: no such class; this network knows {', '.join(names)}")
    return names.index(name)


def open_data(job: CalibrateJob, segmenter: TorchSegmenter) -> Chosen:
    return LabelledData(job.data, job.split, job.protocol, job.frames).open(segmenter)


def track_frames(job: CalibrateJob, chosen: Chosen, title: str) -> Any:
    """The frames with seeded masks and a progress bar."""
    return track(seed_frames(chosen.frames, job.seed), title, total=chosen.count, console=Console(stderr=True))


def describe_data(job: CalibrateJob, segmenter: TorchSegmenter, chosen: Chosen) -> dict[str, Any]:
    """What the fit has seen, so that a report can tell that it saw other data."""
    return {
        "data": job.data.name,
        "split": None if str(job.data) == "street" else job.split,
        "protocol": job.protocol,
        "frames": len(chosen.names),
        "frame_list_hash": chosen.frame_hash,
        "samples": segmenter.method.samples,
        "tau": segmenter.method.tau,
        "window": segmenter.method.window,
        "motion": segmenter.method.motion,
        "seed": job.seed,
    }


def temperature_record(fit: TemperatureFit, after: dict[str, Any]) -> dict[str, Any]:
    """Before on every second row and column, after on all pixels."""
    return {
        "temperature": round(fit.temperature, 4),
        "flips": fit.flips,
        "nll_before": fit.nll,
        "nll_after": after["nll"],
        "ece_before": fit.ece,
        "ece_after": after["ece"],
    }


def undo_class_weights(job: CalibrateJob, segmenter: TorchSegmenter) -> None:
    """In the network that everything is fitted with; `store` does the same to what is written."""
    tensors, meta = load_checkpoint(find_checkpoint(job.model))
    network = segmenter.module.predictor.get_submodule("network")
    load_weights(network, adjust_head(tensors, meta.training), Path(job.model))


def store(job: CalibrateJob, mode: ModeName, record: dict[str, Any]) -> None:
    """What other modes were fitted with stays, unless the weights change."""
    tensors, meta = load_checkpoint(find_checkpoint(job.model))
    if job.undo_class_weights:
        tensors = adjust_head(tensors, meta.training)
        meta = dataclasses.replace(
            meta, calibration={}, metrics={}, training=meta.training | {"class_weights_undone": True}
        )
    save_checkpoint(job.output, tensors, dataclasses.replace(meta, calibration=meta.calibration | {mode: record}))


def print_fit(mode: str, record: dict[str, Any]) -> None:
    """What was fitted, on what, and what it did there."""
    table = Table(
        title=f"{mode}, fitted on {record['data']} {record['split'] or ''}, {record['protocol']}, {record['frames']} images",
        title_justify="left",
    )
    table.add_column("")
    table.add_column("value", justify="right")
    conformal = record["conformal"]
    rows = [
        ("temperature", f"{record['temperature']:.3f}"),
        ("NLL before, after", f"{record['nll_before']:.4f}, {record['nll_after']:.4f}"),
        ("ECE before, after", f"{record['ece_before']:.4f}, {record['ece_after']:.4f}"),
        ("labels that flip", f"{record['flips']:.3%}"),
        (f"LAC threshold for {conformal['coverage']:.0%}", f"{conformal['lac']:.4f}"),
        (f"APS threshold for {conformal['coverage']:.0%}", f"{conformal['aps']:.4f}"),
    ]
    if risk := record.get("class_risk"):
        rows += [
            (f"{risk['class']}: threshold for {risk['level']:.0%} missed", f"{risk['threshold']:.4f}"),
            (f"{risk['class']}: missed here", f"{risk['risk']:.2%} ({risk['images']} images)"),
            (f"{risk['class']}: pixels reported", f"{risk['reported_share']:.2%}"),
        ]
    for row in rows:
        table.add_row(*row)
    Console().print(table)
