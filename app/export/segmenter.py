"""A segmentation checkpoint becomes one graph, with the proof that both compute the same."""

import hashlib
import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from app.export.flags import ExportJob
from app.export.int8_loss import check_data, describe, fitting_images, input_maker, measure_loss
from app.find_model import is_classifier
from app.sources.open_source import open_source
from core.dropout import draw_mask
from core.errors import CheckFailed, InputError
from core.method import MethodOptions, draws_dropout
from core.preprocess import SIZE_MULTIPLE, network_size
from export.file.metadata import StreamMeta, add_metadata
from export.run.cpu import resize_frame
from export.run.sessions import Runner, session_runner
from export.write.parity import Bounds, Parity, hold, images_both, run_both
from export.write.precision import rounding, to_fp16, to_int8
from export.write.proof import TOLERANCE, prove_random, prove_stream
from export.write.traced import to_onnx
from seg.exported import ExportedStep
from seg.pretrained import find_checkpoint
from seg.torch_executor import TorchSegmenter, open_torch_segmenter

PROOF_FRAMES = 30
RESIZED_LABELS = 0.99
"""Least share of equal labels where the graph resizes: its levels differ from torch's by at most one of 255."""
BOUNDS = {"fp16": Bounds(0.995, 1e-3), "int8": Bounds(0.95, 1e-2)}
"""Over the proof run. That of int8 finds a broken graph; what int8 loses is measured on labelled stills."""


def export_model(job: ExportJob, console: Console) -> Any:
    """The graph, proven; which kind of network it is, the checkpoint's header says."""
    if is_classifier(job.model):
        from app.export.classifier import export_classifier

        return export_classifier(job, console)
    if job.precision == "int8":
        check_data(job.calibration_data)
    segmenter = open_torch_segmenter(job.model, exported_options(job), size=job.size)
    refuse_precision(job, segmenter)
    graph = (export_stream if job.stateful else export_logits)(job, segmenter, console)
    if segmenter.method.note:
        console.print(f"not calibrated: {segmenter.method.note}", soft_wrap=True)
    return graph


def exported_options(job: ExportJob) -> MethodOptions:
    """A graph's mean follows motion where that is asked for; a network alone is single passes without dropout."""
    if job.stateful:
        options = job.method.or_default(motion=False)
        return (
            options if job.precision == "fp32" else replace(options, adaptive=False)
        )  # only fp32 holds its statistics
    if job.method.motion:
        raise InputError(
            "the network alone has no temporal mean that could follow motion; add --stateful, or omit --motion"
        )
    if job.method.mode is not None and draws_dropout(job.method.mode):
        raise InputError("the network alone is exported without dropout; add --stateful for MC dropout in the graph")
    return replace(job.method, mode="dnn", motion=None)


def export_stream(job: ExportJob, segmenter: TorchSegmenter, console: Console) -> Any:
    """The whole per-frame computation with its state."""
    module = segmenter.module
    height, width = network_shape(job, segmenter)
    step = ExportedStep(module, height, width, own_world=segmenter.own_world)
    raw = proof_frames(job.proof_frames)
    frames = [resize_frame(frame, (height, width))[0] for frame in raw]
    graph, signature = trace(step, height, width, job.fixed_frames)
    given = signature.inputs, signature.outputs, signature.example
    if not step.dropouts:
        proof = prove_stream(step, session_runner(graph), *given, frames)
        console.print(f"proof: {proof}")
        if not job.fixed_frames:
            equal = resize_agreement(step, graph, given, raw[0])
            console.print(f"its own resize of a {raw[0].shape[1]}x{raw[0].shape[0]} frame: labels equal in {equal:.4%}")
        if job.precision != "fp32":
            graph = in_fewer_bits(job, graph, segmenter, console)
            require_parity(run_both(step, proof_runner(job, graph), *given, frames), job, console)
    else:
        masked, draw = (
            ExportedStep(module, height, width, mask_inputs=True, own_world=segmenter.own_world),
            mask_drawer(step),
        )
        masked_graph, with_masks = trace(masked, height, width, job.fixed_frames)
        masks_given = with_masks.inputs, with_masks.outputs, with_masks.example
        proof = prove_stream(masked, session_runner(masked_graph), *masks_given, frames, draw)
        console.print(f"proof with the masks as inputs: {proof}")
        spread = prove_random(step, session_runner(graph), *given, frames[0])
        console.print(f"proof of the masks drawn inside: {spread}")
        if job.precision != "fp32":
            masked_graph = in_fewer_bits(job, masked_graph, segmenter, console)
            require_parity(run_both(masked, proof_runner(job, masked_graph), *masks_given, frames, draw), job, console)
            graph = in_fewer_bits(job, graph, segmenter, console)
            spread = prove_random(step, session_runner(graph), *given, frames[0])
            console.print(f"proof of the masks drawn inside in {job.precision}: {spread}")
    add_metadata(graph, stream_meta(job, segmenter, height, width, "stream"))
    return graph


def resize_agreement(step: ExportedStep, graph: Any, given: Any, frame: np.ndarray) -> float:
    """How near the graph's resize, in float and rounded, comes to torch's in 8 bits; CheckFailed where labels part."""
    inputs, _, example = given
    shared = dict(zip(inputs, example, strict=True)) | {"frame": torch.from_numpy(frame)[None], "reset": torch.ones(1)}
    with torch.no_grad():
        expected = step(*shared.values())[0].numpy()
    got = session_runner(graph)({name: value.numpy() for name, value in shared.items()})["label"]
    equal = float((got == expected).mean())
    if equal < RESIZED_LABELS:
        raise CheckFailed(
            f"the graph resizes otherwise than torch: {equal:.3%} of the labels are equal; no file was written"
        )
    return equal


def network_shape(job: ExportJob, segmenter: TorchSegmenter) -> tuple[int, int]:
    """(h, w) of the graph's network: the checkpoint's aspect, or the width asked for, rounded to a multiple of 32."""
    height, meta = segmenter.module.height, segmenter.meta
    if job.width is None:
        return network_size(meta.height, meta.width, height)
    if job.width < SIZE_MULTIPLE:
        raise InputError(f"--width must be {SIZE_MULTIPLE} pixels or more, got {job.width}")
    return network_size(height, job.width, height)


def trace(step: ExportedStep, frame_height: int, frame_width: int, fixed: bool) -> tuple[Any, Any]:
    signature = step.signature(frame_height, frame_width)
    sizes: dict[str, dict[int, str]] = {} if fixed else {"frame": {1: "height", 2: "width"}}
    graph = to_onnx(step, signature.example, signature.inputs, signature.outputs, sizes, signature.inner)
    return graph, signature


def export_logits(job: ExportJob, segmenter: TorchSegmenter, console: Console) -> Any:
    """The network alone: normalised images to logits, batch and size free."""
    network = segmenter.module.predictor.get_submodule("network")
    height, width = network_shape(job, segmenter)
    generator = torch.Generator().manual_seed(0)
    example = torch.randn(2, 3, height, width, generator=generator)
    sizes = {"image": {0: "batch", 2: "height", 3: "width"}}
    graph = to_onnx(
        network, [example], ["image"], ["logits"], sizes, least={"height": SIZE_MULTIPLE, "width": SIZE_MULTIPLE}
    )
    run = session_runner(graph)
    largest = 0.0
    for shape in ((1, 3, height, width), (2, 3, height // 32 * 16, width // 2)):
        images = torch.randn(shape, generator=generator)
        with torch.no_grad():
            expected = torch.softmax(network(images), 1).numpy()
        got = torch.softmax(torch.from_numpy(run({"image": images.numpy()})["logits"]), 1).numpy()
        largest = max(largest, float(np.abs(got - expected).max()))
    if largest > TOLERANCE:
        raise CheckFailed(f"the graph's probabilities are up to {largest:.1e} from torch's, so no file was written")
    console.print(f"proof: two sizes and batches, probabilities at most {largest:.1e} apart")
    if job.precision != "fp32":
        graph = in_fewer_bits(job, graph, segmenter, console)
        pictures = [input_maker(segmenter)(frame) for frame in proof_frames(job.proof_frames)]
        require_parity(images_both(network, proof_runner(job, graph), pictures), job, console)
    add_metadata(graph, stream_meta(job, segmenter, height, width, "logits"))
    return graph


def refuse_precision(job: ExportJob, segmenter: TorchSegmenter) -> None:
    """What is not made: known before the work begins."""
    if job.precision != "fp32" and segmenter.method.samples > 1:
        raise InputError(
            f"--precision {job.precision} is made of one pass a frame, got {segmenter.method.samples}; use "
            f"--samples 1 or "
            "--precision fp32"
        )
    mode = segmenter.method.mode
    if job.precision == "int8" and draws_dropout(mode):
        raise InputError(
            f"--precision int8 is measured without dropout, got mode {mode}; use mode {mode.replace('bnn', 'dnn')} "
            "or --precision fp16"
        )


def in_fewer_bits(job: ExportJob, graph: Any, segmenter: TorchSegmenter, console: Console) -> Any:
    """The graph with its network in the precision asked for; for int8 with its loss measured where there are labels."""
    if job.precision == "fp16":
        return to_fp16(graph)
    data = job.calibration_data
    assert data is not None  # run_export asked for it
    images = fitting_images(data, segmenter)
    small = to_int8(graph, images, whole=job.web is not None)
    console.print(describe(measure_loss(graph, small, segmenter, data), images))
    return small


def proof_runner(job: ExportJob, graph: Any) -> Runner:
    """Runs the graph as its number format computes: float16 is rounded, which ONNX Runtime would not do on a CPU."""
    return session_runner(rounding(graph) if job.precision == "fp16" else graph)


def require_parity(parity: Parity, job: ExportJob, console: Console) -> None:
    """CheckFailed outside the bounds; prints both."""
    bounds = BOUNDS[job.precision]
    hold(parity, bounds, job.precision)
    console.print(f"{job.precision} against torch in fp32: {parity} (allowed: {bounds})")


def proof_frames(spec: str) -> list[np.ndarray]:
    """The first 30 frames (H, W, 3) uint8 of a source."""
    with open_source(spec) as source:
        frames = [frame.image for frame, _ in zip(source, range(PROOF_FRAMES), strict=False)]
    if not frames:
        raise InputError(f"--proof-frames {spec}: holds no frame; give a video, an image folder or `street`")
    return frames


def mask_drawer(step: ExportedStep) -> Callable[[Tensor], Tensor]:
    """Draws what the proof graph takes as inputs; all layers of our networks have one rate."""
    rate = step.dropouts[0].rate
    return lambda example: draw_mask(example, rate)


def stream_meta(job: ExportJob, segmenter: TorchSegmenter, height: int, width: int, kind: Any) -> StreamMeta:
    """The record that travels in the file."""
    import onnx

    meta, module = segmenter.meta, segmenter.module
    return StreamMeta(
        kind=kind,
        classes=meta.classes,
        height=height,
        width=width,
        mean=meta.mean,
        std=meta.std,
        **asdict(segmenter.method),
        own_world=list(segmenter.own_world.scores) if segmenter.own_world and segmenter.method.adaptive else [],
        head_stride=module.head_stride,
        precision=job.precision,  # type: ignore[arg-type]
        source=Path(job.model).stem,
        source_sha256=hashlib.sha256(find_checkpoint(job.model).read_bytes()).hexdigest(),
        versions={"torch": torch.__version__, "onnx": onnx.__version__, "python": platform.python_version()},
        licence=meta.licence,
    )
