"""Export of a segmentation network: one proven graph of the whole stream, or of the network alone."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from steadyseg.app.console import Console
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.int8_loss import check_data, fitting_images, input_maker, measure_loss
from steadyseg.app.export.metadata import graph_meta
from steadyseg.app.export.onnx_network import OnnxNetwork
from steadyseg.app.sources.open_source import open_source
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.method import Method, MethodOptions, draws_dropout
from steadyseg.core.model.model import Model
from steadyseg.core.novelty.stored import novelty_head
from steadyseg.core.picture_size import network_size
from steadyseg.core.reference import ReferenceScores
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.subgraph import with_network
from steadyseg.export.kernels.resize import resize_frame
from steadyseg.export.write.proof import BOUNDS
from steadyseg.export.write.traced import Traced, start_of, trace
from steadyseg.seg.exported import ExportedStep, network_signature
from steadyseg.seg.streaming import StreamingSegmenter

PROOF_FRAMES = 30
RESIZED_LABELS = 0.99
"""Smallest share of equal labels if the graph resizes: its levels differ from torch's by at most one of 255."""
RESIZED_PROBS = 1e-3
"""Up to this mean difference of a probability, fewer labels may be equal: a hardly trained network's labels are
near-ties."""


def export_segmenter(
    job: ExportJob, model: Model, console: Console, fixed_size: bool = False
) -> tuple[Traced, GraphMeta]:
    """Traces and proves the graph; CheckFailed if a proof fails.

    With `fixed_size` a stream's graph resizes nothing and takes only frames of the network's own size.
    """
    if job.precision == "int8":
        check_data(job.calibration_data)
    module = open_module(job, model)
    refuse_precision(job, module.method)
    height, width = network_shape(job, module, model)
    if job.stateful:
        say_difference(job, model, module.method, console)
        traced = export_stream(job, model, module, (height, width), console, fixed_size)
    else:
        traced = export_network(job, model, module, (height, width), console)
    reference = reference_scores(module)
    meta = graph_meta(
        model,
        "stream" if job.stateful else "logits",
        module.method,
        (height, width),
        head_stride=module.head_stride,
        precision=job.precision,
        streams=streams_of(job) if job.stateful else 1,
        reference_scores=reference.scores if reference and module.method.calibrated else (),
    )
    if module.method.note:
        console.print(f"not calibrated: {module.method.note}", soft_wrap=True)
    return traced, meta


def open_module(job: ExportJob, model: Model) -> StreamingSegmenter:
    """Builds the streaming computation of the checkpoint with the method of the job."""
    meta = model.meta
    method = exported_options(job).resolve(meta)
    head = novelty_head(model, method) if job.precision == "fp32" else None  # statistics of the frame need fp32
    module = StreamingSegmenter(model.network(), meta.mean, meta.std, job.shape[0] or meta.height, method, head)
    return module.to(memory_format=torch.channels_last).eval()


def exported_options(job: ExportJob) -> MethodOptions:
    """Completes the options. A stream has the options of `video`, without motion if the target does not estimate it;
    the network alone has single passes."""
    if job.stateful:
        return job.method if job.target == "onnx" else job.method.or_default(motion=False)
    if job.method.motion or job.method.lag:
        raise InputError(
            "the network alone has no temporal mean that could follow motion or wait; add --stateful, or omit --motion "
            "and --lag"
        )
    if job.method.mode is not None and draws_dropout(job.method.mode):
        raise InputError("the network alone is exported without dropout; add --stateful for MC dropout in the graph")
    return replace(job.method, mode="dnn", motion=None)


def say_difference(job: ExportJob, model: Model, method: Method, console: Console) -> None:
    """Prints one line if `video` computes another method with the same flags."""
    shown = job.method.resolve(model.meta)
    if str(method) != str(shown):
        console.print(f"computes {method}, where video computes {shown}: a page cannot estimate motion", soft_wrap=True)


def refuse_precision(job: ExportJob, method: Method) -> None:
    """Raises InputError, before the work begins, for a number format that the method does not support."""
    if job.precision != "fp32" and method.adaptive:
        raise InputError(f"--precision {job.precision} has one temperature; omit --adaptive, or use --precision fp32")
    if job.precision != "fp32" and method.samples > 1:
        raise InputError(
            f"--precision {job.precision} is made of one pass a frame, got {method.samples}; use --samples 1 "
            "or --precision fp32"
        )
    if job.precision == "int8" and streams_of(job) not in (1, None):
        raise InputError(f"--precision int8 is fitted on single frames; use --streams dynamic, got {job.streams}")
    if job.precision == "int8" and draws_dropout(method.mode):
        raise InputError(
            f"--precision int8 is measured without dropout, got mode {method.mode}; use mode "
            f"{method.mode.replace('bnn', 'dnn')} or --precision fp16"
        )


def streams_of(job: ExportJob) -> int | None:
    """Returns the number of streams in a call, None for any number."""
    if job.streams is None:
        return 1
    return None if job.streams == "dynamic" else int(job.streams)


def network_shape(job: ExportJob, module: StreamingSegmenter, model: Model) -> tuple[int, int]:
    """Returns (h, w) of the graph's network in steps of 32 pixels: its only size, or the aspect of the checkpoint or of
    --size."""
    if module.fixed_size:
        return module.fixed_size
    height, width, meta = module.height, job.shape[1], model.meta
    return network_size(height, width, height) if width else network_size(meta.height, meta.width, height)


def export_stream(
    job: ExportJob, model: Model, module: StreamingSegmenter, size: tuple[int, int], console: Console, fixed_size: bool
) -> Traced:
    """Exports the whole computation of a frame with its state."""
    raw = proof_frames()
    frames = [resize_frame(frame, size)[0] for frame in raw]
    streams = streams_of(job)
    traced = trace_stream(module, size, fixed_size, streams)
    of_streams = "" if streams == 1 else f" of {streams or 'one to three'} streams a call, each against itself alone"
    masked = " with the masks as inputs" if traced.masked else ""
    console.print(f"proof{of_streams}{masked}: {traced.prove(frames)}", soft_wrap=True)
    if traced.masked:
        console.print(f"proof of the masks drawn inside: {traced.prove_draws(frames[0])}")
    elif not fixed_size:
        equal = resize_agreement(traced, raw[0])
        console.print(f"its own resize of a {raw[0].shape[1]}x{raw[0].shape[0]} frame: labels equal in {equal:.4%}")
    if job.precision == "fp32":
        return traced
    converted = in_fewer_bits(job, traced, model, module, console)
    print_parity(converted, frames, console)
    if converted.masked:
        spread = converted.prove_draws(frames[0])
        console.print(f"proof of the masks drawn inside in {job.precision}: {spread}")
    return converted


def trace_stream(module: StreamingSegmenter, size: tuple[int, int], fixed_size: bool, streams: int | None) -> Traced:
    """Traces the stream, and a second time, if it draws dropout masks, with the masks as inputs.

    A network that is a graph itself replaces the network that was traced in its place.
    """
    reference = reference_scores(module)
    step = ExportedStep(module, *size, reference=reference)
    traced = trace(step, step.signature(*size, fixed_size, streams))
    network = module.predictor.get_submodule("network")
    if isinstance(network, OnnxNetwork):
        return replace(traced, graph=with_network(traced.graph, network.graph))
    if not step.dropouts:
        return traced
    masked = ExportedStep(module, *size, mask_inputs=True, reference=reference)
    return replace(traced, masked=trace(masked, masked.signature(*size, fixed_size, streams)))


def reference_scores(module: StreamingSegmenter) -> ReferenceScores | None:
    """Returns the scores of held-out frames if the checkpoint has scores for this method."""
    return module.head.reference if module.head else None


def resize_agreement(traced: Traced, frame: np.ndarray) -> float:
    """Returns the share of equal labels between the graph, which resizes in float, and torch, which resizes in 8 bits.
    CheckFailed if too few labels are equal and the probabilities differ.
    """
    inputs = dict(zip(traced.signature.inputs, traced.signature.example, strict=True))
    inputs |= start_of(traced.signature, frame)
    with torch.no_grad():
        values = traced.module(*inputs.values())
    got = traced.runner({name: value.numpy() for name, value in inputs.items()})
    equal = float((got["label"] == values[0].numpy()).mean())
    apart = float(np.abs(got[traced.signature.outputs[4]] - values[4].numpy()).mean())
    if equal < RESIZED_LABELS and not apart <= RESIZED_PROBS:
        raise CheckFailed(
            f"the graph resizes otherwise than torch: {equal:.3%} of the labels are equal, and probabilities "
            f"{apart:.1e} apart on average; no file was written"
        )
    return equal


def export_network(
    job: ExportJob, model: Model, module: StreamingSegmenter, size: tuple[int, int], console: Console
) -> Traced:
    """Exports the network alone: normalised images to logits, for any batch and size."""
    network = module.predictor.get_submodule("network")
    traced = trace(network, network_signature(*size))
    generator = torch.Generator().manual_seed(1)
    shapes = ((1, 3, *size), (2, 3, size[0] // 32 * 16, size[1] // 2))
    images = [torch.randn(shape, generator=generator).numpy() for shape in shapes]
    console.print(f"proof: {traced.prove(images)}")
    if job.precision == "fp32":
        return traced
    converted = in_fewer_bits(job, traced, model, module, console)
    print_parity(converted, [input_maker(module)(frame) for frame in proof_frames()], console)
    return converted


def in_fewer_bits(job: ExportJob, traced: Traced, model: Model, module: StreamingSegmenter, console: Console) -> Traced:
    """Converts the network to --precision; prints the loss of int8 if labels allow a measurement."""
    if job.precision == "fp16":
        return traced.in_precision("fp16")
    data = job.calibration_data
    assert data is not None  # check_data asked for it
    images = fitting_images(data, module)
    converted = traced.in_precision("int8", images, whole=job.target == "web")
    loss = measure_loss(traced.graph, converted.graph, module, model.meta.classes, data)
    measured = str(loss) if loss else "its loss was not measured, as test/ and testannot/ are missing"
    console.print(f"int8 fitted on {len(images)} frames; {measured}")
    return converted


def print_parity(converted: Traced, images: list[Any], console: Console) -> None:
    """Proves a graph in fewer bits and prints its differences beside their bounds."""
    precision = converted.precision
    console.print(f"{precision} against torch in fp32: {converted.prove(images)} (allowed: {BOUNDS[precision]})")


@cache
def proof_frames() -> tuple[np.ndarray, ...]:
    """Returns 30 frames (H, W, 3) uint8 of the street, which are drawn once for all graphs of an export."""
    with open_source(f"street:0:{PROOF_FRAMES}") as source:
        return tuple(frame.image for frame in source)
