"""`steadyseg calibrate`: fits temperature and conformal thresholds on labelled data. They are stored in the checkpoint,
or in the graph file, which is proven and written anew."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from steadyseg.app.console import Console
from steadyseg.app.evaluation.calibrate_classifier import ClassifierFits
from steadyseg.app.evaluation.calibrate_segmenter import SegmenterFits
from steadyseg.app.evaluation.flags import CalibrateJob
from steadyseg.app.evaluation.int8 import describe_int8
from steadyseg.app.evaluation.record import describe_familiarity, fit_rows
from steadyseg.app.export.command import export_model
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.onnx_network import OnnxNetwork
from steadyseg.core.errors import InputError, refuse_existing
from steadyseg.core.evaluation.conformal import refuse_few_images
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.temperature import describe_few, temperature_record
from steadyseg.core.method import Method, MethodOptions, PassOptions, draws_dropout, mode_title, settings
from steadyseg.core.model.model import Model
from steadyseg.core.model.tensor_file import FAMILIARITY_PREFIX, replaced
from steadyseg.core.preprocess import Normalize
from steadyseg.core.system.files import require_place
from steadyseg.core.system.telling import telling
from steadyseg.export.file.foreign import ForeignGraph
from steadyseg.export.file.onnx_file import OnnxFile, read_onnx
from steadyseg.export.file.subgraph import IMAGE, network_alone, with_features
from steadyseg.runtime.carried_proof import PROOF_KEY
from steadyseg.runtime.open_model import is_classifier, is_graph, open_checkpoint
from steadyseg.seg.any_network import GivenModel
from steadyseg.seg.calibrate import ConformalFit
from steadyseg.seg.data.moving_stills import MEASURED_FRAMES

SLIDER = tuple(percent / 100 for percent in range(0, 100, 5))
"""Thresholds of confidence above which pixels are counted; the page's slider has them."""


def run_calibrate(job: CalibrateJob) -> int:
    """Fits temperature, prediction sets and a class's bound. The flags are checked before anything is opened."""
    if not 0.0 < job.coverage < 1.0:
        raise InputError(f"--coverage must lie between 0 and 1, got {job.coverage}")
    if not 0.0 < job.risk < 1.0:
        raise InputError(f"--risk must lie between 0 and 1, got {job.risk}")
    flags = {"--familiarity": job.familiarity, "--int8": job.int8, "--logit-adjustment": job.logit_adjustment}
    given = [name for name, asked in flags.items() if asked]
    if is_graph(job.model) and (refused := given[job.familiarity :]):
        raise InputError(f"{refused[0]} is for checkpoints, and {job.model} is a graph file; omit it")
    for flag in given[: job.familiarity + job.int8]:
        if flag == "--int8" and draws_dropout(job.method.mode or "dnn"):
            raise InputError("--int8 is of one pass without dropout; use --mode dnn or vq-dnn")
        if str(job.data) == "street":
            raise InputError(f"{flag} needs the recordings that the network was trained on: a folder with train/")
    if (job.also or job.foreign) and not job.familiarity:
        raise InputError("--also and --foreign are data of --familiarity; add it, or omit them")
    kind, suffix = ("a graph file", ".onnx") if is_graph(job.model) else ("a checkpoint", ".safetensors")
    require_place(job.output, kind, (suffix,), overwrite=job.overwrite)
    if not is_graph(job.model):
        refuse_existing(job.output.with_suffix(".json"), job.overwrite)
    return (calibrate_graph if is_graph(job.model) else calibrate_checkpoint)(job)


def calibrate_checkpoint(job: CalibrateJob) -> int:
    """Fits each method in two passes over the data: first the temperature, then everything that needs calibrated
    probabilities."""
    model = open_checkpoint(job.model)
    fits = ClassifierFits(job, model) if is_classifier(model) else SegmenterFits(job, model)
    records = {method: fit_method(job, fits, method)[0] for method in fits.methods}
    if in_int8 := isinstance(fits, SegmenterFits) and job.int8:
        fits.fit_int8(*records.values())
    model, lines = with_familiarity(job, fits)
    meta = model.meta
    if in_int8:
        lines.append(describe_int8(meta))
    for method, record in records.items():
        meta = meta.with_fit(method, record)
    model.with_record(meta).save(job.output)
    print_fits(records)
    print(*lines, job.output, sep="\n")
    return 0


def calibrate_graph(job: CalibrateJob) -> int:
    """Fits the one method of a graph file, which is proven and written as by `export`."""
    with telling(f"reads {job.model} ..."):
        file = read_onnx(Path(job.model))
        held, model = file.meta.method, model_of(file, job.familiarity)
    MethodOptions(**vars(job.method)).require(held, job.model)
    Console(stderr=True).print(f"calibrates {held}; torch runs its network, and the proof follows", soft_wrap=True)
    fits, record = fit_given(model, held, job)
    (method,), thresholds = fits.methods, record.pop("thresholds")
    fitted, lines = with_familiarity(job, fits)
    print_fits({method: record})
    print("".join(f"{line}\n" for line in lines), end="")
    export = ExportJob(
        job.model,
        job.output,
        stateful=True,
        precision="fp32",
        with_proof=PROOF_KEY in file.props,
        overwrite=job.overwrite,
        method=MethodOptions(**settings(method)),
    )
    meta = replace(fitted.meta.with_fit(method, record), thresholds=thresholds)
    Console(stderr=True).print(f"writes and proves {job.output}", soft_wrap=True)
    return export_model(export, fitted.with_record(meta))


def model_of(file: OnnxFile, familiarity: bool) -> GivenModel:
    """Returns a graph file as a model without calibration, whose network gives features for `familiarity`; InputError
    if its checkpoint must be calibrated."""
    meta, method = file.meta, file.meta.method
    if meta.kind == "classifier":
        raise InputError(
            f"{file.path}: the file of an image classifier; calibrate its checkpoint and export that again"
        )
    plain = meta.kind == "stream" and meta.precision == "fp32"
    if not plain or draws_dropout(method.mode) or meta.reference_scores:
        raise InputError(
            f"{file.path}: expected a file of a stream in fp32 without dropout and familiarity; calibrate the "
            "file or checkpoint that it was made of"
        )
    digest, network, size = meta.source_sha256, network_alone(file.model), (meta.height, meta.width)
    if familiarity:
        network, tensors = with_features(network, str(file.path))
        Console(stderr=True).print(f"familiarity compares the features {', '.join(tensors)}", soft_wrap=True)
    outputs = tuple(value.name for value in network.graph.output)
    data = network.SerializeToString()
    graph = ForeignGraph(file.path, data, digest, network, IMAGE, outputs, False, size, False, (), {})
    given = OnnxNetwork(graph, Normalize(meta.mean, meta.std), len(meta.classes), outputs[1:])
    record, source = replace(meta.record(), calibration={}), Path(meta.source)
    return GivenModel(str(file.path), source, digest, record, {}, {}, given, is_file=False)


def with_familiarity(job: CalibrateJob, fits: SegmenterFits | ClassifierFits) -> tuple[Model, list[str]]:
    """Returns the model of the fits, with familiarity if the job asks for it, and lines that describe it."""
    if not job.familiarity:
        return fits.model, []
    familiarity, model = fits.familiarity(), fits.model
    tensors = replaced(model.tensors, FAMILIARITY_PREFIX, familiarity.tensors)
    model = model.with_record(replace(model.meta, familiarity=familiarity.record), tensors)
    return model, [describe_familiarity(familiarity.record["about"])]


def fit_given(model: GivenModel, method: Method, job: CalibrateJob) -> tuple[SegmenterFits, dict[str, Any]]:
    """Returns the fits and the record of one method, and `thresholds` in it: what remains above each confidence."""
    fits = SegmenterFits(replace(job, method=PassOptions(**settings(method))), model)
    record, metrics = fit_method(job, fits, method)
    return fits, record | {"thresholds": what_remains(job, fits, method, metrics)}


def fit_method(
    job: CalibrateJob, fits: SegmenterFits | ClassifierFits, method: Method
) -> tuple[dict[str, Any], StreamingMetrics]:
    """Returns the record of one method, and its metrics: temperature, `conformal`, and `class_risk` if a class is
    named."""
    if job.risk_class:  # before the work: no more images can hold the class than there are
        refuse_few_images(fits.about["frames"], job.risk, f"{job.risk_class} at most")
    temperature, predictions = fits.fit(method)
    metrics = StreamingMetrics(len(fits.model.meta.classes), fits.void)
    conformal = ConformalFit(fits.void, fits.class_id)
    for probs, labels in predictions:
        metrics.update(probs.cpu(), labels)
        conformal.add(probs.cpu().movedim(1, 0), labels)
    record = {
        **fits.about,
        **settings(method),
        **temperature_record(temperature, metrics.result()),
        "conformal": {"coverage": job.coverage, "lac": conformal.scores.threshold(job.coverage)},
    }
    if conformal.risk and job.risk_class:
        # The frames of a still's clip are no independent samples, so they count as one image.
        views = MEASURED_FRAMES if fits.about.get("protocol") == "moving-stills" else 1
        record["class_risk"] = conformal.risk.control(job.risk, job.risk_class, views)
    return record, metrics


def what_remains(job: CalibrateJob, fits: SegmenterFits, method: Method, metrics: StreamingMetrics) -> dict[str, Any]:
    """Returns the shares of pixels above thresholds of confidence, as a record's `thresholds`."""
    kept, right = metrics.ranking.above(SLIDER)
    shares = {"frames": fits.about["frames"], "kept": kept, "right": right}
    name = re.sub(r"[^\w ]", " ", job.data.name)[:40] or "data"
    return {**settings(method), "thresholds": list(SLIDER), "sets": {name: shares}}


def print_fits(records: dict[Method, dict[str, Any]]) -> None:
    """Prints the fits, their data, and their effect on these data, with a column for each method."""
    first, console = next(iter(records.values())), Console()
    data = " ".join(filter(None, (first["data"], first["split"])))
    protocol = f", {first['protocol']}" if "protocol" in first else ""
    console.print(f"fitted on {data}{protocol}, {first['frames']} images", soft_wrap=True)
    table = Table("", *map(mode_title, records))
    for name, *values in zip(fit_rows(first), *(fit_rows(record).values() for record in records.values()), strict=True):
        table.add_row(name, *values)
    console.print(table)
    if "protocol" in first and (note := describe_few(first)):  # measured with segmentation networks
        Console(stderr=True).print(f"note: {note}", soft_wrap=True)
