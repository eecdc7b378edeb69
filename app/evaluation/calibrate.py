"""`steadyseg calibrate`: fits temperature and conformal thresholds on labelled frames and stores them in the
checkpoint."""

import dataclasses
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from app.evaluation.data import EvaluationFrames, LabelledData, refuse_memory
from app.evaluation.flags import CalibrateJob
from app.evaluation.int8 import describe_int8, fit_int8
from app.evaluation.own_world import describe_world, watch
from app.find_model import is_classifier, is_graph
from core.dropout import has_dropout
from core.errors import InputError, refuse_existing
from core.evaluation.temperature import temperature_record
from core.method import Method, MethodOptions, ModeName, draws_dropout, fit_of, settings
from core.model.checkpoint import CheckpointMeta, load_checkpoint, load_weights, save_checkpoint, without_novelty
from core.novelty.record import NoveltyFit
from core.system.files import require_place
from core.system.machine import choose_device
from seg.calibrate import ConformalFit, fit_temperature
from seg.class_weights import adjust_head
from seg.data.camvid import open_split
from seg.evaluate import FrameMetrics, seed_frames
from seg.novelty.distances import default_stages
from seg.novelty.fit import fit_own_world
from seg.pipeline import segment
from seg.pretrained import find_checkpoint
from seg.torch_executor import TorchSegmenter, open_torch_segmenter


def run_calibrate(job: CalibrateJob) -> int:
    """Two passes over the frames: one for the temperature, one with it for everything that is read from
    probabilities."""
    check_flags(job)
    if is_classifier(job.model):
        from app.evaluation.calibrate_classifier import calibrate_classifier

        return calibrate_classifier(job)
    if job.split == "held-back":
        raise InputError("--split held-back is for image classifiers; give train, val or test")
    if job.protocol == "auto":
        job = dataclasses.replace(job, protocol="stream")
    options = dataclasses.replace(job.method, calibrated=False, adaptive=False).or_default(
        mode="dnn" if job.protocol == "stills" else "vq-dnn"
    )
    if job.protocol == "stills":
        refuse_memory(str(options.mode))
    segmenter = open_torch_segmenter(job.model, options, device=choose_device(job.device), keep_probs=True)
    if job.logit_adjustment:
        adjust_logits(job, segmenter)
    class_id = find_class(job.risk_class, segmenter)
    chosen = open_data(job, segmenter)
    if job.protocol == "stills" and len(chosen.names) < 2:
        raise InputError(f"{len(chosen.names)} image is too little to fit on; give two or more")
    temperature = fit_temperature(segmenter.module, track_frames(job, chosen, "temperature"), segmenter.classes)
    segmenter = segmenter.at_temperature(temperature.temperature)
    live, thresholds = fit_thresholds(job, segmenter, class_id)
    record = describe_data(job, segmenter, chosen) | temperature_record(temperature, live) | thresholds
    known = fit_world(job, segmenter) if job.novelty else None
    small = fit_rounding(job, segmenter, record) if job.int8 else None
    meta = store(job, segmenter.method, record, known, small)
    if fit_of(meta.frame_temperatures, segmenter.method):
        following = dataclasses.replace(options, calibrated=None, adaptive=True)
        segmenter = open_torch_segmenter(job.output, following, device=choose_device(job.device), keep_probs=True)
        _, record["adaptive"] = fit_thresholds(job, segmenter, class_id)
        add(job.output, segmenter.method, record)
    print_fit(segmenter.method, record)
    if known:
        print(describe_world(known.record["about"]))
    if small:
        print(describe_int8(small, meta.int8_is_proven))
    print(job.output)
    return 0


def fit_thresholds(job: CalibrateJob, segmenter: TorchSegmenter, class_id: int | None) -> tuple[Any, dict[str, Any]]:
    """The metrics of the frames, and `conformal` and `class_risk` at this segmenter's temperature."""
    after = open_data(job, segmenter)
    live, conformal = FrameMetrics.of(segmenter.classes), ConformalFit(segmenter.classes.void_id, class_id)
    for frame, maps in segment(track_frames(job, after, "thresholds"), segmenter):
        live.update(frame, maps)
        conformal.update(frame, maps)
    record = {"conformal": {"coverage": job.coverage, **conformal.scores.thresholds(job.coverage)}}
    if conformal.risk and job.risk_class:
        record["class_risk"] = conformal.risk.control(job.risk, job.risk_class)
    return live.result(), record


def check_flags(job: CalibrateJob) -> None:
    """What can be refused before anything is opened."""
    if not 0.0 < job.coverage < 1.0:
        raise InputError(f"--coverage must lie between 0 and 1, got {job.coverage}")
    if not 0.0 < job.risk < 1.0:
        raise InputError(f"--risk must lie between 0 and 1, got {job.risk}")
    if job.method.temperature is not None or job.method.calibrated is not None:
        raise InputError("calibrate fits the temperature itself; omit --temperature and --calibrated")
    if is_graph(job.model):
        raise InputError(
            f"{job.model}: a graph file has its temperature inside; calibrate the checkpoint and export again"
        )
    if job.stages and not job.novelty:
        raise InputError("--stages names what --novelty compares; give both or neither")
    for flag in [name for name, given in (("--novelty", job.novelty), ("--int8", job.int8)) if given]:
        if flag == "--int8" and draws_dropout(job.method.mode or "dnn"):
            raise InputError("--int8 is of one pass without dropout; use --mode dnn or vq-dnn")
        if str(job.data) == "street":
            raise InputError(f"{flag} needs the recordings that the network was trained on: a folder with train/")
    require_place(job.output, "a checkpoint", (".safetensors",), overwrite=job.overwrite)
    refuse_existing(job.output.with_suffix(".json"), job.overwrite)


def find_class(name: str | None, segmenter: TorchSegmenter) -> int | None:
    """The id of a class; InputError with the list where there is none of that name."""
    if name is None:
        return None
    names = segmenter.classes.names
    if name not in names:
        raise InputError(f"--risk-class {name}: no such class; this network knows {', '.join(names)}")
    return names.index(name)


def open_data(job: CalibrateJob, segmenter: TorchSegmenter) -> EvaluationFrames:
    return LabelledData(job.data, job.split, job.protocol, job.only).open(segmenter)


def track_frames(job: CalibrateJob, chosen: EvaluationFrames, title: str) -> Any:
    """The frames with seeded masks and a progress bar."""
    return track(seed_frames(chosen.frames, job.seed), title, total=chosen.count, console=Console(stderr=True))


def describe_data(job: CalibrateJob, segmenter: TorchSegmenter, chosen: EvaluationFrames) -> dict[str, Any]:
    """What the fit has seen, so that a report can tell that it saw other data."""
    return {
        "data": job.data.name,
        "split": None if str(job.data) == "street" else job.split,
        "protocol": job.protocol,
        "frames": len(chosen.names),
        "frame_list_hash": chosen.frame_hash,
        **settings(segmenter.method),
        "seed": job.seed,
    }


def adjust_logits(job: CalibrateJob, segmenter: TorchSegmenter) -> None:
    """In the network that everything is fitted with; `store` does the same to what is written."""
    tensors, meta = load_checkpoint(find_checkpoint(job.model))
    network = segmenter.module.predictor.get_submodule("network")
    load_weights(network, adjust_head(tensors, meta.training), Path(job.model))


def fit_world(job: CalibrateJob, segmenter: TorchSegmenter) -> NoveltyFit:
    """What the network knows of its own world, from the train images, with a frame's temperature for dnn, for both
    rules of vq-dnn and, where it has dropout, of vq-bnn, and for this method."""
    split = open_split(job.data, "train", segmenter.classes)
    network = segmenter.module.predictor.get_submodule("network")
    stages = job.stages or default_stages(network)
    modes: tuple[ModeName, ...] = ("vq-dnn", "vq-bnn") if has_dropout(network) else ("vq-dnn",)
    usual = [MethodOptions(mode=mode, motion=motion).resolve() for mode in modes for motion in (True, False)]
    methods = {str(method): method for method in (*usual, segmenter.method)}
    return fit_own_world(
        network, segmenter.meta, split, stages, torch.device(segmenter.device), list(methods.values()), watch
    )


def fit_rounding(job: CalibrateJob, segmenter: TorchSegmenter, record: dict[str, Any]) -> dict[str, Any]:
    """What int8 needs and loses on these frames."""

    def frames(title: str) -> Any:
        return track_frames(job, open_data(job, segmenter), title)

    told = ("data", "split", "protocol", "frames", "frame_list_hash", "mode", "tau", "motion")
    return {key: record[key] for key in told} | fit_int8(job.data, segmenter, frames)


def store(
    job: CalibrateJob,
    method: Method,
    record: dict[str, Any],
    known: NoveltyFit | None = None,
    small: dict[str, Any] | None = None,
) -> CheckpointMeta:
    """What was fitted for other methods stays, unless the weights change."""
    tensors, meta = load_checkpoint(find_checkpoint(job.model))
    if job.logit_adjustment:
        tensors = adjust_head(tensors, meta.training)
        training = meta.training | {"class_weights_undone": True}
        meta = dataclasses.replace(meta, calibration={}, metrics={}, novelty={}, int8={}, training=training)
        tensors = without_novelty(tensors)
    if known:
        meta, tensors = dataclasses.replace(meta, novelty=known.record), without_novelty(tensors) | known.tensors
    if small:
        meta = dataclasses.replace(meta, int8=small)
    meta = meta.with_fit(method, record)
    save_checkpoint(job.output, tensors, meta)
    return meta


def add(path: Path, method: Method, record: dict[str, Any]) -> None:
    """One more calibration into a checkpoint."""
    tensors, meta = load_checkpoint(path)
    save_checkpoint(path, tensors, meta.with_fit(method, record))


def print_fit(method: Method, record: dict[str, Any]) -> None:
    """What was fitted, on what, and what it did there."""
    table = Table(
        title=(
            f"{method}; fitted on {record['data']} {record['split'] or ''}, {record['protocol']}, "
            f"{record['frames']} images"
        ),
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
