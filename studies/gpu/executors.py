"""Block (a): every executor that a GPU has: its parity with the CPU and its speed, a row at a time."""

import time
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.runtime.torch_executor import torch_executor
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.gpu.files import CUDA_PROOFS, PROOFS, exported, proven
from steadyseg.studies.gpu.timing import WARM_UP, Row, timed
from steadyseg.studies.harness.study import Cache, origin

MODE = MethodOptions(mode="vq-dnn", motion=False)
BATCHES = (1, 16)
NUMBERS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
TORCH_STEPS = ("fp32", "bf16", "fp16")
FILE_STEPS = ("fp32", "fp16")
OPTIONS = ("prefer_nhwc=1", "fuse_conv_bias=1", "cudnn_conv_algo_search=HEURISTIC", "enable_cuda_graph=1")
"""Options of the CUDA provider that are measured, one at a time on top of the defaults."""


def measure_executors(
    models: Iterable[str],
    camvid: Path,
    device: str,
    frames: int,
    seconds: float,
    work: Path,
    cache: Cache,
    minutes: float,
) -> list[str]:
    """Measures the rows that the cache lacks, over the first frames of the val stream; returns the names of those left.

    After so many minutes no further row begins; one is measured in any case. A row is kept as soon as it is measured.
    It is measured anew for another device, commit, or number of frames or seconds, and where it was absent.
    """
    end = time.monotonic() + 60 * minutes
    work.mkdir(parents=True, exist_ok=True)
    split = open_split(camvid, "val", CAMVID)
    stream = [Frame(split[i][0], i, i / 15) for i in range(min(frames, len(split)))]
    about = {"device": name_of(device), **origin()}
    digest = f"{about['device']}, commit {about['commit']}, {frames} frames, {seconds:g} s"
    left, measured = [], 0
    for model in models:
        for name, measure in rows_of(model, stream, device, seconds, work).items():
            row = f"{model}: {name}"
            found = cache.get(row, digest)
            if found is not None and "absent" not in found:
                continue
            if measured and time.monotonic() > end:
                left.append(row)
                continue
            cache.put(row, digest, measure(), about)
            measured += 1
    return left


def name_of(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


def row_names(model: str, device: str) -> list[str]:
    """Returns the names of all rows of a model on such a device; nothing is opened for it."""
    return [f"{model}: {name}" for name in rows_of(model, [], device, 0.0, Path())]


def rows_of(model: str, stream: list[Frame], device: str, seconds: float, work: Path) -> dict[str, Callable[[], Row]]:
    """Returns the measurement of each row: parity and speed, or why it is absent."""
    subject, on_gpu = Subject(model, stream, device, seconds, work), device == "cuda"
    rows: dict[str, Callable[[], Row]] = {}
    for number in TORCH_STEPS if on_gpu else TORCH_STEPS[:2]:  # a CPU computes fp16 far slower than fp32
        rows[f"torch {number}"] = partial(subject.torch_step, number)
    for number in FILE_STEPS:
        for options in ("", *OPTIONS) if on_gpu else ("",):
            rows[f"onnxruntime {number} {options}".strip()] = partial(subject.file_step, number, options)
    for name, proof in (PROOFS | (CUDA_PROOFS if on_gpu else {})).items():
        rows[name] = lambda proof=proof: proven(exported(model, proof[0], work), device, *proof[1:])  # type: ignore[misc]
    for batch in BATCHES:
        for number in TORCH_STEPS if on_gpu else TORCH_STEPS[:2]:
            for way in ("eager", "CUDA graph") if on_gpu else ("eager",):
                rows[f"network {number} {way}, batch {batch}"] = partial(subject.network_alone, number, way, batch)
    return rows


class Subject:
    """A pretrained network, its files, and what a CPU computes with it in fp32."""

    def __init__(self, model: str, stream: list[Frame], device: str, seconds: float, work: Path) -> None:
        self.model, self.stream, self.device, self.seconds, self.work = model, stream, device, seconds, work

    @cached_property
    def expected(self) -> list[np.ndarray]:
        """The labels of the stream."""
        reference = open_segmenter(self.model, MODE, executor="torch", precision="fp32", device="cpu")
        return labels_of(reference, self.stream)

    @cached_property
    def network(self) -> tuple[nn.Module, Tensor]:
        """Returns the network alone, without the mean over time, and its first input (1, 3, h, w), on the device."""
        opened, where = read_segmenter(self.model), torch.device(self.device)
        module = torch_executor(opened, MODE.resolve(opened.meta), device=where).module
        picture = module.preprocess(torch.from_numpy(self.stream[0].image)[None].to(where))
        return module.predictor.get_submodule("network"), picture

    def torch_step(self, number: str) -> Row:
        """The whole step in torch."""
        make = partial(open_segmenter, self.model, MODE, executor="torch", precision=number, device=self.device)  # type: ignore[arg-type]
        return whole_step(make, self.stream, self.expected, self.seconds)

    def file_step(self, number: str, options: str) -> Row:
        """The whole step in ONNX Runtime."""
        file = str(exported(self.model, number, self.work))
        asked = (options,) if options else ()
        make = partial(open_segmenter, file, executor="onnxruntime", device=self.device, provider_options=asked)
        return whole_step(make, self.stream, self.expected, self.seconds)

    @torch.inference_mode()
    def network_alone(self, number: str, way: str, batch: int) -> Row:
        """The bare network in torch, called step by step or as one CUDA graph."""
        network, picture = self.network
        pictures = picture.expand(batch, -1, -1, -1).contiguous(memory_format=torch.channels_last)
        exact, kind = network(pictures), NUMBERS[number]

        def run() -> Tensor:
            with torch.autocast(self.device, kind, enabled=number != "fp32", cache_enabled=False):
                logits: Tensor = network(pictures)
            return logits

        return alone(captured(run) if way == "CUDA graph" else run, exact, batch, self.device, self.seconds)


def whole_step(make: Callable[[], Segmenter], stream: list[Frame], expected: list[np.ndarray], seconds: float) -> Row:
    """Times whole steps: frames a second, and the share of labels that are equal to the CPU's in fp32."""
    try:
        segmenter = make()
    except InputError as error:
        return {"absent": str(error)}
    found = labels_of(segmenter, stream)
    equal = float(np.mean([np.mean(one == other) for one, other in zip(found, expected, strict=True)]))
    frame = iter(range(10**9))
    step = lambda: segmenter.step(stream[next(frame) % len(stream)])  # noqa: E731
    return {"executor": segmenter.executor, "device": segmenter.device, "labels_equal": equal, **timed(step, seconds)}


def labels_of(segmenter: Segmenter, stream: list[Frame]) -> list[np.ndarray]:
    segmenter.reset()
    return [segmenter.step(frame).label.copy() for frame in stream]


def captured(run: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Captures the work as one CUDA graph; every call writes its result into the same memory."""
    side = torch.cuda.Stream()  # a graph must not begin on the default stream, nor with work never done before
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


def alone(run: Callable[[], Tensor], exact: Tensor, batch: int, device: str, seconds: float) -> Row:
    equal = float((run().argmax(1) == exact.argmax(1)).float().mean())

    def finished() -> None:
        run()
        if device == "cuda":
            torch.cuda.synchronize()

    row = timed(finished, seconds)
    return {"labels_equal": equal, **row, "frames_per_s": batch * row["frames_per_s"]}
