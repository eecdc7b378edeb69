"""`steadyseg export --target web`: a proven graph for each method, and the page that runs them in the browser."""

from dataclasses import replace
from pathlib import Path

import torch

from app.console import Console
from app.export.flags import ExportJob
from app.export.segmenter import export_segmenter
from app.in_browser.runtime import cache_path, cached_package, runtime_files
from app.in_browser.site import GraphFile, check_place, write_site
from app.open_model import is_classifier
from core.dropout import is_stochastic, set_dropout_active
from core.errors import InputError
from core.method import ModeName, is_temporal
from core.model.model import Model
from export.file.onnx_file import check_onnx

MODES: tuple[ModeName, ...] = ("vq-dnn", "dnn", "vq-bnn")
"""The modes of the page, the first by default: smoothed, single frames, and one random draw a frame, smoothed."""


def export_web(job: ExportJob, model: Model, console: Console) -> int:
    """Traces and proves each mode, then writes the folder; a proof that fails leaves none and exits with 1."""
    folder = job.output
    if is_classifier(model):
        raise InputError(f"{job.model}: an image classifier; --target web is for segmentation networks; omit it")
    runtime = runtime_files(cached_package(cache_path()))
    graphs = []
    for mode in web_modes(job, model):
        console.print(f"method {mode}")
        torch.manual_seed(0)
        tau = job.method.tau if is_temporal(mode) else None
        of_method = replace(job, method=replace(job.method, mode=mode, tau=tau))
        traced, meta = export_segmenter(of_method, model, console, fixed_size=True)
        data = traced.model(meta).SerializeToString()
        file = check_onnx(data, Path(f"{mode}.onnx"))
        graphs.append(GraphFile(file.meta, data))
    write_site(folder, graphs, runtime, job.overwrite)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    console.print(
        f"wrote {folder} ({size / 1e6:.1f} MB); see it: python -m http.server --directory {folder}", soft_wrap=True
    )
    print(folder)
    return 0


def check_web(job: ExportJob) -> None:
    """Raises InputError, before any work, for flags that a page has no use for, or where its folder cannot be
    written."""
    if job.method.samples not in (None, 1):
        raise InputError(f"--samples {job.method.samples}: a page draws one pass a frame; omit it")
    if job.method.motion:
        raise InputError("--motion on: a page follows no motion; omit it")
    if job.precision not in ("fp32", "int8"):
        raise InputError(f"--precision {job.precision}: a page runs fp32 or int8; omit it")
    check_place(job.output, job.overwrite)


def web_modes(job: ExportJob, model: Model) -> tuple[ModeName, ...]:
    """Returns the mode that was asked for, or all modes that the network and the number format support."""
    if job.method.mode is not None:
        return (job.method.mode,)
    network = model.network()
    set_dropout_active(network, True)
    return MODES if is_stochastic(network) and job.precision == "fp32" else MODES[:2]
