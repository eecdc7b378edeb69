"""`steadyseg export`: a graph file of a model, a page that runs it in the browser, or a model for Triton."""

from dataclasses import replace

import torch

from app.console import Console
from app.export.classifier import export_classifier
from app.export.flags import ExportJob
from app.export.segmenter import export_segmenter
from app.export.web import check_web, export_web
from app.open_model import is_classifier, open_checkpoint
from core.errors import InputError, refuse_existing
from core.method import is_temporal
from core.model.model import Model
from core.preprocess import SIZE_MULTIPLE
from export.write.traced import import_onnx
from export.write.triton import check_place, write_repository


def run_export(job: ExportJob) -> int:
    """Traces, proves and writes the model. A proof that fails leaves no file and exits with 1."""
    job = prepared(job)
    return export_model(job, open_checkpoint(job.model))


def prepared(job: ExportJob) -> ExportJob:
    """Returns the job with its precision and target decided; InputError, before any work, where it cannot be done."""
    if job.precision == "auto":
        job = replace(job, precision="fp32")
    if job.target != "onnx":
        job = replace(job, stateful=True)
    refuse_job(job)
    {"onnx": check_file, "triton": check_triton, "web": check_web}[job.target](job)
    return job


def export_model(job: ExportJob, model: Model) -> int:
    """Traces, proves and writes an opened model for a job that is `prepared`."""
    import_onnx()
    console = Console(stderr=True)
    if job.target == "web":
        return export_web(job, model, console)
    torch.manual_seed(0)
    export_graph = export_classifier if is_classifier(model) else export_segmenter
    traced, meta = export_graph(job, model, console)
    if job.target == "triton":
        write_repository(job.output, traced.model(meta))
        console.print(f"wrote {job.output} for Triton; no server was run")
    else:
        traced.write(job.output, meta, job.overwrite)
        console.print(f"wrote {job.output} ({job.output.stat().st_size / 1e6:.1f} MB)")
    print(job.output)
    return 0


def refuse_job(job: ExportJob) -> None:
    """Raises InputError for flags that do not go together, whatever the model."""
    if job.shape[1] is not None and job.shape[1] < SIZE_MULTIPLE:
        raise InputError(f"--size {job.size}: the width must be {SIZE_MULTIPLE} pixels or more")
    if job.precision == "bf16":
        raise InputError(
            "--precision bf16 is no number format of a graph file: export fp32 and choose bf16 where it runs "
            "(steadyseg video --executor openvino --precision bf16)"
        )


def check_file(job: ExportJob) -> None:
    """Raises InputError, before any work, where the file cannot be written."""
    if job.output.suffix != ".onnx":
        raise InputError(f"-o {job.output}: the name of a graph file ends in .onnx (or choose --target web or triton)")
    refuse_existing(job.output, job.overwrite)
    if not job.output.parent.is_dir():
        raise InputError(f"-o {job.output}: its folder does not exist; make it first")


def check_triton(job: ExportJob) -> None:
    """Raises InputError, before any work, where no model for Triton can be made."""
    if job.method.mode is not None and not is_temporal(job.method.mode):
        raise InputError("--target triton serves streams, so the graph needs a state; use --mode vq-dnn or vq-bnn")
    check_place(job.output, job.overwrite)
