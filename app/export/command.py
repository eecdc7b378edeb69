"""`steadyseg export`: a graph file of a model, or a page that runs it in the browser."""

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import torch

from steadyseg.app.console import Console
from steadyseg.app.export.carried_proof import proof_entries
from steadyseg.app.export.classifier import export_classifier
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.segmenter import export_segmenter
from steadyseg.app.in_browser.runtime import cache_path, cached_package, runtime_files
from steadyseg.app.in_browser.site import check_site_place, write_site
from steadyseg.core.dropout import is_stochastic, set_dropout_active
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.method import ModeName, draws_dropout, mode_title
from steadyseg.core.model.model import Model
from steadyseg.core.picture_size import SIZE_MULTIPLE
from steadyseg.core.system.files import require_place, write_atomic
from steadyseg.export.file.onnx_file import check_onnx
from steadyseg.export.write.traced import require_onnxscript, write_model
from steadyseg.runtime.open_model import is_classifier, open_checkpoint

MODES: tuple[ModeName, ...] = ("vq-dnn", "dnn", "vq-bnn")
"""The modes of a page, the first by default: smoothed, single frames, and one random draw a frame, smoothed."""


def run_export(job: ExportJob) -> int:
    """Traces, writes and proves the model. A proof that fails removes the file and exits with 1."""
    job = prepared(replace(job, output=Path(job.output)))  # a program may give a text
    return export_model(job, open_checkpoint(job.model))


def prepared(job: ExportJob) -> ExportJob:
    """Returns the job with its precision and target decided; InputError, before any work, if it cannot be done."""
    if job.precision == "auto":
        job = replace(job, precision="fp32")
    if job.target != "onnx":
        job = replace(job, stateful=True)
    refuse_job(job)
    if job.target == "web":
        if job.method.samples not in (None, 1):
            raise InputError(f"--samples {job.method.samples}: a page draws one pass a frame; omit it")
        if job.method.motion:
            raise InputError("--motion on: a page follows no motion; omit it")
        if job.precision != "fp32":
            raise InputError(f"--precision {job.precision}: a page runs fp32; omit it")
        check_site_place(job.output, job.overwrite)
    else:
        require_place(job.output, "a graph file (--target onnx)", (".onnx",), overwrite=job.overwrite)
    return job


def export_model(job: ExportJob, model: Model) -> int:
    """Traces, writes and proves an opened model for a job that is `prepared`."""
    require_onnxscript()
    console = Console(stderr=True)
    if job.target == "web":
        return export_web(job, model, console)
    torch.manual_seed(0)
    export_graph = export_classifier if is_classifier(model) else export_segmenter
    traced, meta, prove = export_graph(job, model, console)
    before = job.output.read_bytes() if job.output.is_file() else None
    write_model(traced.model(meta), job.output, job.overwrite)
    console.print(f"wrote {job.output} ({job.output.stat().st_size / 1e6:.1f} MB); its proof follows", soft_wrap=True)
    try:
        prove()
        if job.with_proof:
            console.print("makes the proof that the file carries ...")
            write_model(traced.model(meta, proof_entries(traced, meta, console)), job.output, overwrite=True)
    except CheckFailed as error:
        job.output.unlink() if before is None else write_atomic(job.output, before)
        kept = "no file is left" if before is None else f"{job.output} is the former file again"
        raise CheckFailed(f"{error}; {kept}") from error
    except KeyboardInterrupt:
        console.print(f"{job.output} is there, and not proven", soft_wrap=True)
        raise
    print(job.output)
    return 0


def refuse_job(job: ExportJob) -> None:
    """Raises InputError for flags that no model can combine."""
    if job.shape[1] is not None and job.shape[1] < SIZE_MULTIPLE:
        raise InputError(f"--size {job.size}: the width must be {SIZE_MULTIPLE} pixels or more")
    if job.with_proof and (not job.stateful or job.target != "onnx"):
        raise InputError("--with-proof is for one graph file with a state; add --stateful without --target, or omit it")
    if job.with_proof and draws_dropout(job.method.mode or "dnn"):
        raise InputError(f"--with-proof compares frames, and mode {job.method.mode} draws random dropout; omit one")
    if job.precision in ("bf16", "int8"):
        runs = "graph file" if job.precision == "bf16" else "checkpoint"
        raise InputError(
            f"--precision {job.precision} is no number format of a graph file; export fp32, or run the {runs} in it: "
            f"steadyseg video --backend openvino --precision {job.precision}"
        )


def export_web(job: ExportJob, model: Model, console: Console) -> int:
    """Traces each mode and writes the folder of the page, then proves each; a proof that fails removes the folder."""
    folder = job.output
    if is_classifier(model):
        raise InputError(f"{job.model}: an image classifier; omit --target web, which is for segmentation networks")
    runtime = runtime_files(cached_package(cache_path()))
    graphs, proofs = [], []
    for mode in web_modes(job, model):
        console.print(f"method {mode_title(mode)}")
        torch.manual_seed(0)
        traced, meta, prove = export_segmenter(replace(job, method=replace(job.method, mode=mode)), model, console)
        data = traced.model(meta).SerializeToString()
        graphs.append(check_onnx(data, Path(f"{mode}.onnx")))
        proofs.append((mode, prove))
    write_site(folder, graphs, runtime, job.overwrite)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    console.print(f"wrote {folder} ({size / 1e6:.1f} MB); its proofs follow", soft_wrap=True)
    try:
        for mode, prove in proofs:
            console.print(f"method {mode_title(mode)}")
            prove()
    except CheckFailed as error:
        shutil.rmtree(folder)
        raise CheckFailed(f"{error}; no folder is left") from error
    console.print(f"see it: python -m http.server --directory {shlex.quote(str(folder))}", soft_wrap=True)
    print(folder)
    return 0


def web_modes(job: ExportJob, model: Model) -> tuple[ModeName, ...]:
    """Returns the mode of --mode, or all modes that the network supports."""
    if job.method.mode is not None:
        return (job.method.mode,)
    network = model.network()
    set_dropout_active(network, True)
    return MODES if is_stochastic(network) else MODES[:2]
