"""`steadyseg wrap`: another program's network as a file of this project, with the temporal mean, maps and metadata."""

from dataclasses import replace

from steadyseg.app.console import Console
from steadyseg.app.export.command import export_model, prepared, web_modes
from steadyseg.app.export.flags import ExportJob, WrapJob
from steadyseg.app.export.onnx_network import OnnxNetwork
from steadyseg.app.export.segmenter import exported_options
from steadyseg.app.export.steady import class_list, input_size, normalisation
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.method import MethodOptions, settings
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.preprocess import Normalize
from steadyseg.core.system.telling import telling
from steadyseg.export.file.foreign import read_foreign
from steadyseg.export.write.traced import OPSET, require_onnxscript
from steadyseg.seg.any_network import GivenModel
from steadyseg.seg.data.class_file import read_classes

LICENCE = "that of the wrapped network, which its file does not say"


def run_wrap(job: WrapJob) -> int:
    """Reads, wraps, proves and writes the network. A proof that fails leaves no file and exits with 1."""
    export = prepared(export_job(job))
    named = read_classes(job.classes) if job.classes else None
    require_onnxscript()
    console = Console(stderr=True)
    height, width = export.shape
    if height is not None and width is None:
        raise InputError(f"--size {job.size}: expected HEIGHTxWIDTH in pixels, as 384x512")
    size = (height, width) if height and width else None
    with telling(f"reads {job.network} ..."):
        foreign = read_foreign(job.network, size, OPSET, job.logits, job.bgr)
    height, width = input_size(foreign.size, f"{job.network}: its size")
    for flag, given, level in (("--mean", job.mean, 0.0), ("--std", job.std, 1 / 255)):
        if foreign.levels and not all(abs(value - level) <= 1e-6 for value in given):
            raise InputError(
                f"{flag} {shorten(given)}: {job.network} takes uint8 pixels and normalises them itself; omit {flag}"
            )
    mean, std = (job.mean or (0.0,) * 3, job.std or (1 / 255,) * 3) if foreign.levels else (job.mean, job.std)
    mean, std = normalisation("--mean", mean or None), normalisation("--std", std or None)
    network = OnnxNetwork(foreign, Normalize(mean, std), None if named is None else len(named))
    classes = class_list(named, network.form.classes)
    meta = CheckpointMeta("onnx", {}, classes, height, width, mean, std, licence=LICENCE)
    model = GivenModel(str(job.network), job.network, foreign.sha256, meta, {}, {}, network, is_file=False)
    layout = "(1, h, w, 3)" if foreign.channels_last else "(1, 3, h, w)"
    console.print(
        f"{job.network}: pictures of {height}x{width} {layout}; its output is taken for {network.form}", soft_wrap=True
    )
    unnamed = f"its classes are called class 0 to class {len(classes) - 1}; --classes names them"
    lacking = "no MC dropout, so disagreement is that between frames; no familiarity yet"
    for note in filter(None, (*foreign.notes, network.note, unnamed * (named is None), lacking)):
        console.print(f"note: {note}", soft_wrap=True)
    if job.temperature is not None:
        for mode in web_modes(export, model) if export.target == "web" else (None,):
            method = exported_options(replace(export, method=replace(export.method, mode=mode))).resolve()
            method = replace(method, temperature=job.temperature)  # raises InputError if out of range
            meta = meta.with_fit(method, settings(method) | {"temperature": job.temperature})
        model = replace(model, meta=meta)
    return export_model(export, model)


def export_job(job: WrapJob) -> ExportJob:
    """Returns the export that writes the wrapped network."""
    motion = job.target == "onnx" if job.motion is None else job.motion
    return ExportJob(
        str(job.network),
        job.output,
        job.target,
        stateful=True,
        size=job.size,
        with_proof=job.with_proof,
        overwrite=job.overwrite,
        method=MethodOptions(tau=job.tau, motion=motion),
    )
