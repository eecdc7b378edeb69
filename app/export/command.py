"""`steadyseg export`: one graph file of a checkpoint, or a folder with a page that runs it in the browser."""

from pathlib import Path

import torch
from rich.console import Console

from app.export.checkpoint import read_checkpoint
from app.export.classifier import export_classifier
from app.export.flags import ExportJob
from app.export.segmenter import export_segmenter
from app.export.web import export_web
from core.errors import InputError, refuse_existing
from core.method import is_temporal
from export.write.traced import import_onnx
from export.write.triton import check_place, write_repository


def run_export(job: ExportJob) -> int:
    """Traces, proves, writes; a proof that fails leaves no file and exits with 1."""
    if (job.output is None) == (job.web is None):
        raise InputError("say what to write: -o FILE.onnx (a graph file) or --web DIR (a page for the browser)")
    if job.web is not None:
        return export_web(job, job.web)
    if job.runtime is not None:
        raise InputError("--runtime is for --web; omit it")
    output = job.output
    assert output is not None
    if output.suffix != ".onnx":
        raise InputError(f"-o {output}: the name of a graph file ends in .onnx")
    refuse_existing(output, job.overwrite)
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: its folder does not exist; make it first")
    if job.triton:
        check_triton(job, job.triton, output.stem)
    if job.fixed_frames and not job.stateful:
        raise InputError("--fixed-frames is for stateful files; add --stateful or omit it")
    if job.precision == "bf16":
        raise InputError(
            "--precision bf16 is no number format of a graph file: export fp32 and choose bf16 where it runs "
            "(steadyseg video --executor openvino --precision bf16)"
        )
    checkpoint = read_checkpoint(job.model)
    import_onnx()
    console = Console(stderr=True)
    torch.manual_seed(0)
    export_graph = export_classifier if checkpoint.is_classifier else export_segmenter
    traced, meta = export_graph(job, checkpoint, console)
    traced.write(output, meta, job.overwrite)
    console.print(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB)")
    if job.triton:
        console.print(
            f"wrote {write_repository(job.triton, output.stem, traced.model(meta))} for Triton; no server was run"
        )
    print(output)
    return 0


def check_triton(job: ExportJob, folder: Path, name: str) -> None:
    """InputError before any work."""
    if not job.stateful or (job.method.mode is not None and not is_temporal(job.method.mode)):
        raise InputError(
            "--triton serves streams: the graph needs a memory; use --stateful with --mode vq-dnn or vq-bnn"
        )
    check_place(folder, name, job.overwrite)
