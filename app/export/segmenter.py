"""Export of a segmentation network: one proven graph of the whole stream, or of the network alone."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch

from steadyseg.app.console import Console, track
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.onnx_network import OnnxNetwork
from steadyseg.app.sources.open_source import open_source
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.method import Method, MethodOptions, draws_dropout, is_temporal, method_of_fit, settings
from steadyseg.core.model.model import Model
from steadyseg.core.picture_size import network_size
from steadyseg.core.reference import ReferenceScores
from steadyseg.export.file.metadata import GraphMeta, KindName
from steadyseg.export.file.sessions import Runner
from steadyseg.export.file.subgraph import with_network
from steadyseg.export.write.proof import BOUNDS
from steadyseg.export.write.stream_run import by_module, frame_inputs
from steadyseg.export.write.traced import Traced, trace
from steadyseg.runtime.kernels.resize import resize_frame
from steadyseg.seg.exported import ExportedStep, network_signature
from steadyseg.seg.streaming import StreamingSegmenter

PROOF_FRAMES = 30
RESIZED_LABELS = 0.99
"""Smallest share of equal labels if the graph resizes: its levels differ from torch's by at most one of 255."""
RESIZED_LEVELS = 3.0
"""Fewer labels may be equal if the probabilities differ by at most this many times what a level of 255 changes: a
hardly trained network's labels are near-ties. Other resizes: 7 to 25 times."""


@dataclass(frozen=True)
class ExportPlan:
    """The network of an export, the computation around it, and the form of the graph."""

    model: Model
    module: StreamingSegmenter
    """The computation, with the exported method."""
    size: tuple[int, int]
    """(h, w) of the network's input in pixels."""
    precision: str
    """fp32 or fp16."""
    for_page: bool
    """The graph runs in a browser: it resizes nothing."""

    @property
    def reference(self) -> ReferenceScores | None:
        """Scores of held-out frames if the checkpoint has scores for this method."""
        return self.module.head.reference if self.module.head else None


class Unproven(NamedTuple):
    """A graph with its metadata, and its proof, which may take minutes."""

    traced: Traced
    meta: GraphMeta
    prove: Callable[[], None]
    """Runs the proof and prints what it finds; CheckFailed if it fails."""


def export_segmenter(job: ExportJob, model: Model, console: Console) -> Unproven:
    """Traces the graph."""
    plan = plan_export(job, model)
    method, reference = plan.module.method, plan.reference
    if job.stateful and str(method) != str(shown := job.method.resolve(model.meta)):
        console.print(f"computes {method}, where video computes {shown}: a page cannot estimate motion", soft_wrap=True)
    traced, prove = export_stream(plan, console) if job.stateful else export_network(plan, console)
    meta = graph_meta(
        model,
        "stream" if job.stateful else "logits",
        method,
        plan.size,
        head_stride=plan.module.head_stride,
        precision=plan.precision,
        reference_scores=reference.scores if reference and method.calibrated else (),
        expected=reference.expected.record() if reference and reference.expected and method.calibrated else {},
    )
    if method.note:
        console.print(f"not calibrated: {method.note}", soft_wrap=True)
    return Unproven(traced, meta, prove)


def graph_meta(model: Model, kind: KindName, method: Method, size: tuple[int, int], **more: Any) -> GraphMeta:
    """Returns the metadata of a graph for inputs of size (h, w); `more`: the other fields of `GraphMeta`."""
    meta = model.meta
    if kind == "stream" and (fit := meta.fit_in_use(method)) and "conformal" in fit:
        of_method = bool(meta.thresholds) and settings(method_of_fit(meta.thresholds)) == settings(method)
        more |= {"fit": fit, "thresholds": meta.thresholds if of_method else {}}
    return GraphMeta(
        kind=kind,
        classes=meta.classes,
        height=size[0],
        width=size[1],
        mean=meta.mean,
        std=meta.std,
        method=method,
        source=model.path.stem,
        source_sha256=model.sha256,
        versions={"torch": torch.__version__, "onnx": onnx.__version__, "python": platform.python_version()},
        licence=meta.licence,
        **more,
    )


def plan_export(job: ExportJob, model: Model) -> ExportPlan:
    """Builds the streaming computation of the checkpoint with the job's method. InputError, before the work begins, for
    a number format that the method does not support."""
    meta, (height, width) = model.meta, job.shape
    method = exported_options(job).resolve(meta)
    refuse_precision(job.precision, method)
    head = familiarity_head(model, method) if job.precision == "fp32" else None  # statistics of the frame need fp32
    module = StreamingSegmenter(
        model.network(), meta.mean, meta.std, meta.height if height is None else height, method, head
    )
    aspect = (module.height, width) if width else (meta.height, meta.width)
    return ExportPlan(
        model,
        module.to(memory_format=torch.channels_last).eval(),
        module.fixed_size or network_size(*aspect, module.height),
        job.precision,
        for_page=job.target == "web",
    )


def exported_options(job: ExportJob) -> MethodOptions:
    """Completes the options. A stream has the options of `video`, without motion if the target does not estimate it;
    the network alone has single passes."""
    if job.stateful:
        return job.method if job.target == "onnx" else job.method.or_default(motion=False)
    mode = job.method.mode or "dnn"
    if job.method.motion or job.method.tau or is_temporal(mode):
        raise InputError("the network alone has no temporal mean; add --stateful, or omit vq-, --tau and --motion")
    if draws_dropout(mode):
        raise InputError("the network alone is exported without dropout; add --stateful for MC dropout in the graph")
    return replace(job.method, mode="dnn", motion=None)


def refuse_precision(precision: str, method: Method) -> None:
    """Raises InputError for a number format that the method does not support."""
    if precision == "fp32":
        return
    if method.samples > 1:
        raise InputError(
            f"--precision {precision} is made of one pass a frame, got {method.samples}; use --samples 1 "
            "or --precision fp32"
        )


def export_stream(plan: ExportPlan, console: Console) -> tuple[Traced, Callable[[], None]]:
    """Returns the whole computation of a frame with its state, and its proof."""
    console.print(f"traces the stream of {plan.module.method}, which takes a minute or more ...", soft_wrap=True)
    traced = trace_stream(plan)
    written = traced if plan.precision == "fp32" else traced.in_fp16()
    return written, partial(prove_stream, traced, written, console, resizes=not plan.for_page)


def prove_stream(traced: Traced, written: Traced, console: Console, resizes: bool) -> None:
    """Proves the graph in fp32 on drawn frames, and the graph that is written, if it is another one."""
    console.print(f"draws {PROOF_FRAMES} frames for the proof ...")
    raw = proof_frames()
    height, width = traced.signature.example[0].shape[1:3]
    frames = [resize_frame(frame, (height, width))[0] for frame in raw]
    masked = " with the masks as inputs" if traced.masked else ""
    console.print(f"proof{masked}: {traced.prove(track(frames, 'proof'))}", soft_wrap=True)
    if not traced.masked and resizes:
        equal = resize_agreement(traced, raw[0])
        console.print(f"its own resize of a {raw[0].shape[1]}x{raw[0].shape[0]} frame: labels equal in {equal:.4%}")
    prove_masks(traced, frames[0], console)
    if written is not traced:
        prove_fp16(written, frames, console)
        prove_masks(written, frames[0], console)


def prove_masks(traced: Traced, frame: np.ndarray, console: Console) -> None:
    """Proves the masks that a graph draws, if it draws some."""
    if traced.masked:
        console.print(f"draws the masks of one frame many times in {traced.precision} ...")
        console.print(f"proof of the masks drawn inside: {traced.prove_draws(frame)}")


def trace_stream(plan: ExportPlan) -> Traced:
    """Traces the stream, and a second time, if it draws dropout masks, with the masks as inputs.

    For a network that is a graph itself, a stand-in is traced, which the graph then replaces.
    """
    form = *plan.size, plan.for_page
    step = ExportedStep(plan.module, *plan.size, reference=plan.reference)
    traced = trace(step, step.signature(*form))
    network = plan.module.predictor.get_submodule("network")
    if isinstance(network, OnnxNetwork):
        return replace(traced, graph=with_network(traced.graph, network.graph))
    if not step.dropouts:
        return traced
    masked = ExportedStep(plan.module, *plan.size, mask_inputs=True, reference=plan.reference)
    return replace(traced, masked=trace(masked, masked.signature(*form)))


def resize_agreement(traced: Traced, frame: np.ndarray) -> float:
    """Returns the share of equal labels between the graph, which resizes in float, and torch, which resizes in 8 bits.
    CheckFailed if too few labels are equal and the probabilities differ."""
    signature = traced.signature
    given = dict(zip(signature.inputs, signature.example, strict=True)) | frame_inputs(frame, 1, starts=True)
    inputs = {name: value.numpy() for name, value in given.items()}

    def maps(run: Runner, darker: int = 0) -> tuple[np.ndarray, np.ndarray]:
        outputs = run(inputs | {"frame": np.maximum(inputs["frame"], darker) - np.uint8(darker)})
        return outputs["label"], outputs[signature.outputs[4]]

    (labels, probs), (its_labels, its_probs) = maps(torch_runner(traced)), maps(traced.runner)
    equal, apart = float((labels == its_labels).mean()), float(np.abs(probs - its_probs).mean())
    if equal < RESIZED_LABELS:
        level = float(np.abs(maps(torch_runner(traced), darker=1)[1] - probs).mean())
        if not apart <= RESIZED_LEVELS * level:
            raise CheckFailed(
                f"the graph resizes otherwise than torch: {equal:.3%} of the labels are equal, and probabilities "
                f"{apart:.1e} apart on average; no file was written"
            )
    return equal


def torch_runner(traced: Traced) -> Runner:
    """Returns the module as a function of named arrays."""
    return lambda arrays: by_module(
        traced.module, traced.signature, {name: torch.from_numpy(value) for name, value in arrays.items()}
    )


def export_network(plan: ExportPlan, console: Console) -> tuple[Traced, Callable[[], None]]:
    """Returns the network alone, normalised images to logits, for any batch and size; and its proof."""
    height, width = plan.size
    console.print("traces the network ...")
    traced = trace(plan.module.predictor.get_submodule("network"), network_signature(height, width))
    written = traced if plan.precision == "fp32" else traced.in_fp16()

    def prove() -> None:
        generator = torch.Generator().manual_seed(1)
        shapes = ((1, 3, height, width), (2, 3, height // 32 * 16 + 1, width // 2 + 1))
        console.print("proves the network on pictures of two sizes ...")
        console.print(f"proof: {traced.prove([torch.randn(shape, generator=generator).numpy() for shape in shapes])}")
        if written is not traced:
            with torch.no_grad():
                images = [plan.module.preprocess(torch.from_numpy(frame)[None]) for frame in proof_frames()]
            prove_fp16(written, [image.contiguous().numpy() for image in images], console)

    return written, prove


def prove_fp16(converted: Traced, proven: Sequence[np.ndarray], console: Console) -> None:
    """Proves a graph in fp16 on the inputs `proven`. Prints the differences beside their bounds."""
    found = converted.prove(track(proven, "proof of fp16"))
    console.print(f"fp16 against torch in fp32: {found} (allowed: {BOUNDS['fp16']})")


@cache
def proof_frames() -> tuple[np.ndarray, ...]:
    """Returns 30 frames (H, W, 3) uint8 of the street, which are drawn once for all graphs of an export."""
    with open_source(f"street:0:{PROOF_FRAMES}") as source:
        return tuple(frame.image for frame in source)
