"""`steadyseg calibrate`: fits temperature and conformal thresholds on labelled frames, stored in the checkpoint."""

import dataclasses
from typing import Any

import torch

from steadyseg.app.console import Console, figure_table, track
from steadyseg.app.evaluation.data import HELD_OUT, EvaluationFrames, LabelledData, refuse_memory
from steadyseg.app.evaluation.flags import CalibrateJob
from steadyseg.app.evaluation.int8 import describe_int8, fit_int8
from steadyseg.app.evaluation.record import describe_novelty, fit_rows
from steadyseg.app.open_model import is_classifier, is_graph, open_checkpoint
from steadyseg.core.errors import InputError, refuse_existing
from steadyseg.core.evaluation.temperature import (
    WIDE_GRID,
    BeyondGrid,
    TemperatureFit,
    describe_extreme,
    temperature_record,
)
from steadyseg.core.method import Method, MethodOptions, draws_dropout, settings
from steadyseg.core.model.checkpoint import without_novelty
from steadyseg.core.model.model import Model
from steadyseg.core.novelty.record import NoveltyFit
from steadyseg.core.segmenter import Segmenter, segment
from steadyseg.core.system.files import require_place
from steadyseg.core.system.machine import choose_device
from steadyseg.seg.calibrate import ConformalFit, adjust_head, fit_temperature
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.evaluate import FrameMetrics, seed_frames
from steadyseg.seg.novelty.fit import default_stages, fit_statistics
from steadyseg.seg.torch_executor import TorchExecutor, torch_executor


def run_calibrate(job: CalibrateJob) -> int:
    """Fits in two passes over the frames: the temperature, then with it all that is computed from probabilities."""
    check_flags(job)
    model = open_checkpoint(job.model)
    if is_classifier(model):
        from steadyseg.app.evaluation.calibrate_classifier import calibrate_classifier

        return calibrate_classifier(job, model)
    if job.protocol == "auto":
        job = dataclasses.replace(job, protocol="moving-stills" if job.split == HELD_OUT else "stream")
    labelled = LabelledData(job.data, job.split, job.protocol, None, model)
    options = MethodOptions(**vars(job.method), calibrated=False, adaptive=False).or_default(
        mode="dnn" if job.protocol == "stills" else "vq-dnn"
    )
    if job.protocol == "stills":
        refuse_memory(str(options.mode))
    method, device = options.resolve(model.meta), choose_device(job.device)
    if job.logit_adjustment:
        model = with_adjusted_logits(model)
    executor = torch_executor(model, method, device=device, keep_probs=True)
    class_id = find_class(job.risk_class, executor)
    chosen = labelled.open(executor)
    if job.protocol == "stills" and len(chosen.names) < 2:
        raise InputError(f"{len(chosen.names)} image is too little to fit on; give two or more")
    temperature = find_temperature(job, labelled, executor, chosen)
    executor = executor.at_temperature(temperature.temperature)
    live, thresholds = fit_thresholds(job, labelled, executor, class_id)
    record = describe_data(job, executor, chosen) | temperature_record(temperature, live) | thresholds
    novelty = fit_novelty(job, executor) if job.novelty else None
    int8 = fit_rounding(job, labelled, executor, record) if job.int8 else None
    model = with_fits(model, executor.method, record, novelty, int8)
    method = executor.method
    model.save(job.output)
    print_fit(method, record)
    if novelty:
        print(describe_novelty(novelty.record["about"]))
    if int8:
        print(describe_int8(int8, model.meta.int8_is_proven))
    print(job.output)
    return 0


def find_temperature(
    job: CalibrateJob, labelled: LabelledData, executor: TorchExecutor, chosen: EvaluationFrames
) -> TemperatureFit:
    """Fits the temperature, in a second pass on a wider grid where the first one was too narrow."""
    try:
        return fit_temperature(executor.module, track_frames(job, chosen, "temperature"), executor.classes)
    except BeyondGrid:
        again = track_frames(job, labelled.open(executor), "temperature, wider")
        fit = fit_temperature(executor.module, again, executor.classes, WIDE_GRID)
        Console(stderr=True).print(describe_extreme(fit.temperature), soft_wrap=True)
        return fit


def fit_thresholds(
    job: CalibrateJob, labelled: LabelledData, executor: TorchExecutor, class_id: int | None
) -> tuple[Any, dict[str, Any]]:
    """Returns the metrics of the frames, and `conformal` and `class_risk` at this executor's temperature."""
    after = labelled.open(executor)
    live, conformal = FrameMetrics.of(executor.classes), ConformalFit(executor.classes.void_id, class_id)
    for frame, maps in segment(track_frames(job, after, "thresholds"), Segmenter(executor)):
        live.update(frame, maps)
        conformal.update(frame, maps)
    record = {"conformal": {"coverage": job.coverage, **conformal.scores.thresholds(job.coverage)}}
    if conformal.risk and job.risk_class:
        record["class_risk"] = conformal.risk.control(job.risk, job.risk_class)
    return live.result(), record


def check_flags(job: CalibrateJob) -> None:
    """Raises InputError for flags that can be refused before anything is opened."""
    if not 0.0 < job.coverage < 1.0:
        raise InputError(f"--coverage must lie between 0 and 1, got {job.coverage}")
    if not 0.0 < job.risk < 1.0:
        raise InputError(f"--risk must lie between 0 and 1, got {job.risk}")
    if is_graph(job.model):
        raise InputError(
            f"{job.model}: a graph file has its temperature inside; calibrate the checkpoint and export again"
        )
    for flag in [name for name, given in (("--novelty", job.novelty), ("--int8", job.int8)) if given]:
        if flag == "--int8" and draws_dropout(job.method.mode or "dnn"):
            raise InputError("--int8 is of one pass without dropout; use --mode dnn or vq-dnn")
        if str(job.data) == "street":
            raise InputError(f"{flag} needs the recordings that the network was trained on: a folder with train/")
    require_place(job.output, "a checkpoint", (".safetensors",), overwrite=job.overwrite)
    refuse_existing(job.output.with_suffix(".json"), job.overwrite)


def find_class(name: str | None, executor: TorchExecutor) -> int | None:
    """The id of a class; InputError with all names for an unknown one."""
    if name is None:
        return None
    names = executor.classes.names
    if name not in names:
        raise InputError(f"--risk-class {name}: no such class; this network knows {', '.join(names)}")
    return names.index(name)


def track_frames(job: CalibrateJob, chosen: EvaluationFrames, title: str) -> Any:
    """Returns the frames, with a seed for the dropout masks of each, behind a progress bar."""
    return track(seed_frames(chosen.frames), title, total=chosen.count)


def describe_data(job: CalibrateJob, executor: TorchExecutor, chosen: EvaluationFrames) -> dict[str, Any]:
    """Describes the data of the fit for the record, so that a later report can state whether it uses the same data."""
    return {
        "data": job.data.name,
        "split": None if str(job.data) == "street" else job.split,
        "protocol": job.protocol,
        "frames": len(chosen.names),
        "frame_list_hash": chosen.frame_hash,
        **settings(executor.method),
    }


def with_adjusted_logits(model: Model) -> Model:
    """Returns the model with logits adjusted for the class weights of its training, without calibration or metrics."""
    tensors = without_novelty(adjust_head(model.tensors, model.meta.training))
    training = model.meta.training | {"class_weights_undone": True}
    meta = dataclasses.replace(model.meta, calibration={}, metrics={}, novelty={}, int8={}, training=training)
    return model.with_record(meta, tensors)


def fit_novelty(job: CalibrateJob, executor: TorchExecutor) -> NoveltyFit:
    """Fits novelty on the train images, for all methods of the network."""
    split = open_split(job.data, "train", executor.classes)
    network = executor.module.predictor.get_submodule("network")
    stages = default_stages(network)
    device, temperature = torch.device(executor.device), executor.module.method.temperature
    return fit_statistics(network, executor.meta, split, stages, device, temperature, track)


def fit_rounding(
    job: CalibrateJob, labelled: LabelledData, executor: TorchExecutor, record: dict[str, Any]
) -> dict[str, Any]:
    """Fits the ranges of int8 on the train images and measures what int8 loses on the frames of this job."""

    def frames(title: str) -> Any:
        return track_frames(job, labelled.open(executor), title)

    told = ("data", "split", "protocol", "frames", "frame_list_hash", "mode", "tau", "motion")
    return {key: record[key] for key in told} | fit_int8(job.data, executor, frames)


def with_fits(
    model: Model, method: Method, record: dict[str, Any], novelty: NoveltyFit | None, int8: dict[str, Any] | None
) -> Model:
    """Returns the model with the new calibration of this method; the calibrations of other methods stay."""
    meta, tensors = model.meta, model.tensors
    if novelty:
        meta, tensors = dataclasses.replace(meta, novelty=novelty.record), without_novelty(tensors) | novelty.tensors
    if int8:
        meta = dataclasses.replace(meta, int8=int8)
    return model.with_record(meta.with_fit(method, record), tensors)


def print_fit(method: Method, record: dict[str, Any]) -> None:
    """Prints the fit, the data that it was made on, and its effect on them."""
    table = figure_table(
        "",
        "value",
        title=f"{method}; fitted on {record['data']} {record['split'] or ''}, {record['protocol']}, "
        f"{record['frames']} images",
    )
    rows = fit_rows(record)
    if risk := record.get("class_risk"):
        rows |= {
            f"{risk['class']}: threshold for {risk['level']:.0%} missed": f"{risk['threshold']:.4f}",
            f"{risk['class']}: missed here": f"{risk['risk']:.2%} ({risk['images']} images)",
            f"{risk['class']}: pixels reported": f"{risk['reported_share']:.2%}",
        }
    for row in rows.items():
        table.add_row(*row)
    Console().print(table)
