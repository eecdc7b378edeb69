"""`steadyseg wrap`: another program's network as a file of this project, with the temporal mean, maps and metadata."""

from dataclasses import replace
from pathlib import Path

import torch

from steadyseg.app.console import Console, track
from steadyseg.app.evaluation.data import LabelledData
from steadyseg.app.export.command import export_model, prepared, web_modes
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.onnx_network import OnnxNetwork, WrappedModel
from steadyseg.app.export.segmenter import exported_options
from steadyseg.app.export.wrap_flags import WrapJob
from steadyseg.app.steady import class_list, input_size, normalisation
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.temperature import WIDE_GRID, describe_extreme
from steadyseg.core.method import Method, MethodOptions, settings
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.preprocess import Normalize
from steadyseg.export.file.foreign import read_foreign
from steadyseg.export.write.traced import OPSET, import_onnx
from steadyseg.seg.calibrate import fit_temperature
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.streaming import StreamingSegmenter
from steadyseg.seg.torch_executor import TorchExecutor

LICENCE = "that of the wrapped network, which its file does not say"


def run_wrap(job: WrapJob) -> int:
    """Reads, wraps, proves and writes the network. A proof that fails leaves no file and exits with 1."""
    if job.temperature is not None and job.data:
        raise InputError("--temperature sets what --data fits; give one of them")
    export = prepared(export_job(job))
    mean, std = normalisation("--mean", job.mean or None), normalisation("--std", job.std or None)
    named = read_classes(job.classes) if job.classes else None
    import_onnx()
    console = Console(stderr=True)
    height, width = export.shape
    if height is not None and width is None:
        raise InputError(f"--size {job.size}: expected HEIGHTxWIDTH in pixels, as 384x512")
    foreign = read_foreign(job.network, (height, width) if height and width else None, OPSET)
    height, width = input_size(foreign.size)
    network = OnnxNetwork(foreign, Normalize(mean, std), None if named is None else len(named))
    classes = class_list(named, network.form.classes)
    meta = CheckpointMeta("onnx", {}, classes, height, width, mean, std, licence=LICENCE)
    model = WrappedModel(str(job.network), job.network, foreign.sha256, meta, {}, {}, network, is_file=False)
    layout = "(1, h, w, 3)" if foreign.channels_last else "(1, 3, h, w)"
    taken = f"its output {foreign.output[:40]!r} is taken for {network.form}"
    console.print(f"{job.network}: pictures of {height}x{width} {layout}; {taken}", soft_wrap=True)
    for note in foreign.notes:
        console.print(f"note: {note}")
    if named is None:
        console.print(f"note: its classes are called class 0 to class {len(classes) - 1}; --classes names them")
    console.print("note: without MC dropout, disagreement is that between frames alone; no familiarity", soft_wrap=True)
    if job.data or job.temperature is not None:
        model = calibrated(job, export, model, console)
    return export_model(export, model)


def export_job(job: WrapJob) -> ExportJob:
    """Returns the export that writes the wrapped network."""
    motion = job.target == "onnx" if job.motion is None else job.motion
    return ExportJob(
        str(job.network),
        job.output,
        job.target,
        stateful=True,
        streams="1",  # the foreign graph takes one picture
        size=job.size,
        with_proof=job.with_proof,
        overwrite=job.overwrite,
        method=MethodOptions(tau=job.tau, motion=motion),
    )


def calibrated(job: WrapJob, export: ExportJob, model: WrappedModel, console: Console) -> WrappedModel:
    """Returns the model with a temperature for each method: the job's temperature, or a temperature fitted on the job's
    data."""
    meta = model.meta
    for method in exported_methods(export, model):
        temperature = fitted(job.data, method, model, console) if job.data else job.temperature
        assert temperature is not None
        method = replace(method, temperature=temperature)  # raises InputError if out of range
        meta = meta.with_fit(method, settings(method) | {"temperature": temperature})
    return replace(model, meta=meta)


def fitted(data: Path, method: Method, model: WrappedModel, console: Console) -> float:
    """Returns the temperature of a method on labelled frames, and prints it.

    Stills become clips by a virtual camera, so that the temporal mean is on during the fit.
    """
    meta = model.meta
    module = StreamingSegmenter(model.network(), meta.mean, meta.std, meta.height, method)
    executor = TorchExecutor(module, meta, torch.device("cpu"))
    protocol = "stream" if str(data) == "street" else "moving-stills"
    chosen = LabelledData(data, "val", protocol, None, model).open(executor)
    frames = track(chosen.frames, f"temperature of {method.mode}", total=chosen.count)
    fit = fit_temperature(module, frames, meta.classes, WIDE_GRID)
    console.print(
        f"temperature {fit.temperature:.3f} for {method}: NLL {fit.nll:.4f} before, {fit.nll_calibrated:.4f} after, on "
        f"{len(chosen.names)} frames of {data}",
        soft_wrap=True,
    )
    if extreme := describe_extreme(fit.temperature):
        console.print(extreme, soft_wrap=True)
    return round(fit.temperature, 4)


def exported_methods(export: ExportJob, model: WrappedModel) -> list[Method]:
    """Returns the methods that the export writes, without their temperatures."""
    modes = web_modes(export, model) if export.target == "web" else (None,)
    return [exported_options(replace(export, method=replace(export.method, mode=mode))).resolve() for mode in modes]
