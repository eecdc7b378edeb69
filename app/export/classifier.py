"""Export of an image classifier: one proven graph, raw pictures in, probabilities and uncertainty out."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
import torch

from steadyseg.app.console import Console
from steadyseg.app.export.flags import ExportJob
from steadyseg.app.export.segmenter import Unproven, graph_meta
from steadyseg.classification.evaluate import default_samples
from steadyseg.classification.exported import ExportedClassifier
from steadyseg.classification.pretrained import build_members
from steadyseg.core.dropout import draw_mask, is_stochastic, set_dropout_active
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.model.model import Model
from steadyseg.export.file.sessions import Arrays, openvino_runner, session_runner
from steadyseg.export.write.proof import RandomProof, compare_draws, prove_pictures
from steadyseg.export.write.traced import Traced, trace
from steadyseg.runtime.open_model import frame_flags, refuse_flags

PROVEN_BATCHES = (1, 2, 5)
DRAWS = 64
"""Smallest number of passes of torch, and of the graph, for a comparison of their moments."""
DRAWN_PICTURES = {64: 16, 4096: 8}
"""Pictures of this comparison by the largest side. The total variance of their logits then varies by 4 % from proof to
proof; 15 % are allowed."""
PASS_PIXELS = 2**22
"""Pixels of all passes in one call of this comparison: 4,096 passes of CIFAR's size, 83 of 224 x 224."""


def export_classifier(job: ExportJob, model: Model, console: Console) -> Unproven:
    """Traces the graph, whose proof compares two libraries with torch."""
    stream_flags = {"--stateful": job.stateful, **frame_flags(job.method), "--size": job.size is not None}
    refuse_flags(job.model, {f"--target {job.target}": job.target != "onnx", **stream_flags})
    if job.precision != "fp32":
        raise InputError(f"a classifier is exported in fp32, got --precision {job.precision}; omit it")
    [network], meta, asked = build_members([model]), model.meta, job.method
    mode = asked.mode or ("bnn" if (asked.samples or 1) > 1 else "dnn")
    samples = default_samples(asked.samples, mode, is_stochastic(network))
    set_dropout_active(network, bool(samples))
    method = replace(asked, mode="bnn" if samples else "dnn", samples=samples or 1).resolve(meta)
    if meta.familiarity:
        console.print("a classifier's graph file has no familiarity", soft_wrap=True)
    if method.note:
        console.print(f"not calibrated: {method.note}", soft_wrap=True)
    console.print("traces the classifier ...")
    step = ExportedClassifier(network, meta.mean, meta.std, method.samples, method.temperature)
    traced = trace(step, step.signature(meta.height))
    if shapes := step.trace_masks(meta.height):  # from now on the module takes masks
        traced = replace(traced, masked=trace(step, step.signature(meta.height, shapes)))
    size = (meta.height, meta.width)
    about = graph_meta(model, "classifier", method, size, head_stride=1, precision="fp32")
    return Unproven(traced, about, partial(prove, step, traced, meta.height, console))


def prove(step: ExportedClassifier, drawing: Traced, size: int, console: Console) -> None:
    """Compares ONNX Runtime and OpenVINO with torch's own passes, on batches of several sizes and equal masks."""
    traced = drawing.masked or drawing
    rates = traced.signature.mask_rates

    def one_by_one(batch: Arrays) -> Arrays:
        with torch.inference_mode():
            outputs = step.pass_by_pass(
                torch.from_numpy(batch["image"]), [torch.from_numpy(batch[name]) for name in rates]
            )
        return {name: value.numpy() for name, value in outputs.items()}

    runners = {"ONNX Runtime": traced.runner, "OpenVINO": openvino_runner(traced.graph.SerializeToString())}
    batches, masked = list(proof_batches(traced, size)), " with the masks as inputs" if rates else ""
    for runtime, run in runners.items():
        console.print(f"proof{masked}, {runtime}: {prove_pictures(one_by_one, run, batches, runtime)}")
    if drawing.masked:
        console.print(f"proof of the masks drawn inside: {prove_draws(drawing, size)}")


def proof_batches(traced: Traced, size: int) -> Iterator[Arrays]:
    """Yields pictures and masks in batches of several sizes."""
    torch.manual_seed(0)
    examples = dict(zip(traced.signature.inputs, traced.signature.example, strict=True))
    for count in PROVEN_BATCHES:
        batch = {"image": proof_pictures(count, size, seed=count)}
        for name, rate in traced.signature.mask_rates.items():
            batch[name] = draw_mask(torch.ones(count, *examples[name].shape[1:]), rate).numpy()
        yield batch


def proof_pictures(count: int, size: int, seed: int) -> np.ndarray:
    """Returns (B, s, s, 3) uint8: noise, coarse blotches and plain colours, so that classes and confidences vary."""
    generator = np.random.default_rng(seed)
    pictures = np.empty((count, size, size, 3), np.uint8)
    for number in range(count):
        grain = (1, 4, size)[number % 3]
        cells = -(-size // grain)
        coarse = generator.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        pictures[number] = coarse.repeat(grain, 0).repeat(grain, 1)[:size, :size]
    return pictures


def prove_draws(traced: Traced, size: int) -> RandomProof:
    """Compares mean and variance of the logits of single passes over draws of torch and of the graph."""
    step = traced.module
    assert isinstance(step, ExportedClassifier)
    shown = onnx.ModelProto()
    shown.CopyFrom(traced.graph)
    shown.graph.output.extend(value for value in shown.graph.value_info if value.name == "logits")
    run = session_runner(shown)
    pictures = proof_pictures(next(count for side, count in DRAWN_PICTURES.items() if size <= side), size, seed=0)
    at_once = max(1, PASS_PIXELS // (size**2 * step.samples))
    parts = [pictures[start : start + at_once] for start in range(0, len(pictures), at_once)]
    by_torch: list[np.ndarray] = []
    by_graph: list[np.ndarray] = []
    for _ in range(-(-DRAWS // step.samples)):
        with torch.inference_mode():
            ours = np.concatenate([step(torch.from_numpy(part))[3].numpy() for part in parts])
        theirs = np.concatenate([run({"image": part})["logits"] for part in parts])
        by_torch += list(ours.swapaxes(0, 1))  # (P, N, K): N draws of (P, K)
        by_graph += list(theirs.swapaxes(0, 1))
    if not all(np.isfinite(logits).all() for logits in by_graph):
        raise CheckFailed("the graph's logits are no numbers")
    return compare_draws(by_torch, by_graph)
