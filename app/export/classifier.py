"""`steadyseg export` of an image classifier: raw pictures in, probabilities and uncertainty out, with its proof."""

import hashlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from app.export.flags import ExportJob
from app.find_model import find_model, frame_flags, refuse_flags
from classification.evaluate import default_samples
from classification.exported import OUTPUTS, ExportedClassifier
from classification.opening import open_classifier
from core.dropout import draw_mask, is_stochastic, set_dropout_active
from core.errors import CheckFailed, InputError
from core.method import Method
from core.model.checkpoint import CheckpointMeta
from core.prediction import Prediction
from core.predictors import MonteCarlo
from core.preprocess import Normalize
from export.file.metadata import StreamMeta, add_metadata
from export.run.networks import openvino_available
from export.run.sessions import Arrays, Runner, openvino_runner, session_runner
from export.write.picture_proof import prove_pictures
from export.write.proof import RandomProof, compare_draws
from export.write.traced import to_onnx

PROVEN_BATCHES = (1, 2, 5)
DRAWS = 64
"""Passes of torch and of the graph whose moments are compared, at least."""
DRAWN_PICTURES = {64: 16, 4096: 8}
"""Up to this side, so many pictures: their logits' total variance then varies by 4 % from proof to proof, 15 % are
allowed."""
PASS_PIXELS = 2**22
"""Of all passes of one call of that comparison: 4,096 of CIFAR's size, 83 of 224 x 224."""


def export_classifier(job: ExportJob, console: Console) -> Any:
    """The graph of the checkpoint, proven; CheckFailed where a proof fails."""
    refuse_flags(
        job.model,
        {
            "--stateful": job.stateful,
            **frame_flags(job.method),
            "--size": job.size is not None,
            "--width": job.width is not None,
            "--calibration-data": job.calibration_data is not None,
            "--proof-frames": job.proof_frames != "street",
            "--fixed-frames": job.fixed_frames,
        },
    )
    if job.precision != "fp32":
        raise InputError(f"a classifier is exported in fp32, got --precision {job.precision}; omit it")
    path = find_model(job.model)
    network, meta = open_classifier(path)
    asked = job.method
    mode = asked.mode or ("bnn" if (asked.samples or 1) > 1 else "dnn")
    samples = default_samples(asked.samples, mode, is_stochastic(network))
    set_dropout_active(network, bool(samples))
    if asked.adaptive:
        raise InputError("--adaptive on: a classifier's graph file has one temperature; omit it")
    method = replace(asked, mode="bnn" if samples else "dnn", samples=samples or 1, adaptive=False).resolve(meta)
    if meta.novelty:
        console.print("a classifier's graph file has one temperature and tells nothing of novelty", soft_wrap=True)
    if method.note:
        console.print(f"not calibrated: {method.note}", soft_wrap=True)
    step = ExportedClassifier(network, meta.mean, meta.std, method.samples, method.temperature)
    graph = trace(step, meta.height, [])
    if samples:
        shapes = step.trace_masks(meta.height)
        prove(step, trace(step, meta.height, shapes), meta, shapes, console)
        step.draw_inside()
        console.print(f"proof of the masks drawn inside: {prove_draws(step, graph, meta.height)}")
    else:
        prove(step, graph, meta, [], console)
    add_metadata(graph, graph_meta(job, path, meta, method))
    return graph


def trace(step: ExportedClassifier, size: int, shapes: list[tuple[int, ...]]) -> Any:
    """The graph, its batch free; with masks as inputs where shapes (N, ...) are given."""
    example = step.example(size)
    masks = [f"mask_{i:03}" for i in range(len(shapes))]
    inputs = ["image", *masks]
    given = [example, *(torch.ones(len(example), *shape) for shape in shapes)]
    sizes = {name: {0: "batch"} for name in inputs}
    try:
        return to_onnx(step, given, inputs, OUTPUTS, sizes, inner=("logits",))
    except (RuntimeError, ValueError, NotImplementedError) as error:  # of torch's exporter, of many classes
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"torch cannot export this network ({first}); no file was written") from error


def prove(
    step: ExportedClassifier, graph: Any, meta: CheckpointMeta, shapes: list[tuple[int, ...]], console: Console
) -> None:
    """Against torch's own predictor, on batches of several sizes, with the same masks on both sides; by all runtimes
    here."""
    runners: dict[str, Runner] = {"ONNX Runtime": session_runner(graph)}
    if openvino_available():
        runners["OpenVINO"] = openvino_runner(graph.SerializeToString())
    drawn = list(proof_batches(step, meta.height, shapes))
    for where, run in runners.items():
        proof = prove_pictures(torch_runner(step, meta), run, drawn, where)
        console.print(f"proof{' with the masks as inputs' if shapes else ''}, {where}: {proof}")


def proof_batches(step: ExportedClassifier, size: int, shapes: list[tuple[int, ...]]) -> Iterator[Arrays]:
    torch.manual_seed(0)
    for count in PROVEN_BATCHES:
        batch = {"image": proof_pictures(count, size, seed=count)}
        for number, (shape, layer) in enumerate(zip(shapes, step.calls, strict=True)):
            batch[f"mask_{number:03}"] = draw_mask(torch.ones(count, *shape), layer.rate).numpy()
        yield batch


def proof_pictures(count: int, size: int, seed: int) -> np.ndarray:
    """(B, s, s, 3) uint8: noise, coarse blotches and plain colours in turn, so that classes and confidences vary."""
    generator = np.random.default_rng(seed)
    pictures = np.empty((count, size, size, 3), np.uint8)
    for number in range(count):
        grain = (1, 4, size)[number % 3]
        cells = -(-size // grain)
        coarse = generator.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        pictures[number] = coarse.repeat(grain, 0).repeat(grain, 1)[:size, :size]
    return pictures


def torch_runner(step: ExportedClassifier, meta: CheckpointMeta) -> Callable[[Arrays], Arrays]:
    """The product's own way: N passes one after the other (core's MonteCarlo), the masks of each handed to it in
    turn."""
    predictor = MonteCarlo(step.network, step.samples, step.temperature)
    normalize = Normalize(meta.mean, meta.std)

    def compute(batch: Arrays) -> Arrays:
        masks = [torch.from_numpy(batch[name]) for name in sorted(batch) if name.startswith("mask_")]
        for layer in set(step.calls):
            own = [mask for mask, call in zip(masks, step.calls, strict=True) if call is layer]
            layer.masks = [mask[:, number] for number in range(step.samples) for mask in own]
        with torch.inference_mode():
            found: Prediction = predictor(normalize(torch.from_numpy(batch["image"]).permute(0, 3, 1, 2)))
        for layer in set(step.calls):
            layer.masks = None
        largest = found.max_entropy
        outputs = (found.probs, found.entropy / largest, found.disagreement / largest)
        return {name: value.numpy() for name, value in zip(OUTPUTS[:3], outputs, strict=True)}

    return compute


def prove_draws(step: ExportedClassifier, graph: Any, size: int) -> RandomProof:
    """Logits of single passes, drawn by torch and by the graph: their mean and variance over the draws."""
    run = session_runner(with_output(graph, "logits"))
    pictures = proof_pictures(next(count for side, count in DRAWN_PICTURES.items() if size <= side), size, seed=0)
    at_once = max(1, PASS_PIXELS // (size**2 * step.samples))
    parts = [pictures[start : start + at_once] for start in range(0, len(pictures), at_once)]
    drawn: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for _ in range(-(-DRAWS // step.samples)):
        with torch.inference_mode():
            ours = np.concatenate([step(torch.from_numpy(part))[3].numpy() for part in parts])
        theirs = np.concatenate([run({"image": part})["logits"] for part in parts])
        for found, logits in zip(drawn, (ours, theirs), strict=True):
            found += list(logits.swapaxes(0, 1))  # (P, N, K): N draws of (P, K)
    if not all(np.isfinite(logits).all() for logits in drawn[1]):
        raise CheckFailed("the graph's logits are no numbers, so no file was written")
    return compare_draws(*drawn)


def with_output(graph: Any, name: str) -> Any:
    """A copy with an inner tensor as an output."""
    import onnx

    shown = onnx.ModelProto()
    shown.CopyFrom(graph)
    shown.graph.output.append(next(value for value in shown.graph.value_info if value.name == name))
    return shown


def graph_meta(job: ExportJob, path: Path, meta: CheckpointMeta, method: Method) -> StreamMeta:
    """The record that travels in the file."""
    import onnx

    return StreamMeta(
        kind="classifier",
        classes=meta.classes,
        height=meta.height,
        width=meta.width,
        mean=meta.mean,
        std=meta.std,
        **{name: value for name, value in asdict(method).items() if name != "motion"},
        head_stride=1,
        precision="fp32",
        source=Path(job.model).stem,
        source_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        versions={"torch": torch.__version__, "onnx": onnx.__version__, "python": platform.python_version()},
        licence=meta.licence,
    )
