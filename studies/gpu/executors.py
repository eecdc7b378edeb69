"""Block (a): every executor that a GPU has: its parity with the CPU and its speed."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from app.open_model import open_segmenter
from core.classes import CAMVID
from core.errors import InputError
from core.frame import Frame
from core.method import MethodOptions
from core.segmenter import Segmenter
from seg.data.camvid import open_split
from seg.pretrained import read_segmenter
from seg.torch_executor import torch_executor
from studies.gpu.files import PROOFS, STREAM_ROWS, exported, proven, together
from studies.gpu.timing import WARM_UP, Row, timed

MODE = MethodOptions(mode="vq-dnn", motion=False)
BATCHES = (1, 16)
NUMBERS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
WHOLE_STEPS = (("torch", "fp32"), ("torch", "bf16"), ("onnxruntime", "fp32"), ("onnxruntime", "fp16"))


def measure_executors(models: Iterable[str], camvid: Path, device: str, frames: int, seconds: float, work: Path) -> Row:
    """{model: {row: parity and speed, or why it is absent}} over the first frames of the val stream."""
    work.mkdir(parents=True, exist_ok=True)
    split = open_split(camvid, "val", CAMVID)
    stream = [Frame(split[i][0], i, i / 15) for i in range(min(frames, len(split)))]
    return {model: rows_of(model, stream, device, seconds, work) for model in models}


def row_names(device: str) -> list[str]:
    """Returns the names of the rows of a model, which is all that is measured on such a device."""
    networks = [
        f"network {name} {way}, batch {batch}"
        for batch in BATCHES
        for name in NUMBERS
        for way in ("eager", "CUDA graph")
        if device == "cuda" or (name != "fp16" and way == "eager")
    ]
    wholes = [f"{library} {number}" for library, number in WHOLE_STEPS]
    return [*wholes, *PROOFS, *STREAM_ROWS, *networks]


def rows_of(model: str, stream: list[Frame], device: str, seconds: float, work: Path) -> Row:
    expected = labels_of(open_segmenter(model, MODE, executor="torch", precision="fp32", device="cpu"), stream)
    rows: Row = {}
    for precision in ("fp32", "bf16"):
        rows[f"torch {precision}"] = whole_step(
            partial(open_segmenter, model, MODE, executor="torch", precision=precision, device=device),
            stream,
            expected,
            seconds,
        )
    for precision in ("fp32", "fp16"):
        file = str(exported(model, precision, work))
        rows[f"onnxruntime {precision}"] = whole_step(
            partial(open_segmenter, file, executor="onnxruntime", device=device), stream, expected, seconds
        )
    rows |= {name: proven(exported(model, kind, work), device, wide) for name, (kind, wide) in PROOFS.items()}
    many = exported(model, "streams", work)
    rows |= {name: together(many, device, count, stream, seconds) for name, count in STREAM_ROWS.items()}
    for batch in BATCHES:
        rows |= networks_alone(model, stream[0].image, device, batch, seconds)
    return rows


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


def networks_alone(model: str, image: np.ndarray, device: str, batch: int, seconds: float) -> Row:
    """The bare network in torch, by number format, eager and as one CUDA graph."""
    where = torch.device(device)
    opened = read_segmenter(model)
    module = torch_executor(opened, MODE.resolve(opened.meta), device=where).module
    network = module.predictor.get_submodule("network")
    picture = module.preprocess(torch.from_numpy(image)[None].to(where))
    pictures = picture.expand(batch, -1, -1, -1).contiguous(memory_format=torch.channels_last)
    rows: Row = {}
    with torch.inference_mode():
        exact = network(pictures)
        for name, kind in NUMBERS.items():
            if kind is torch.float16 and device == "cpu":
                continue  # torch computes it there far slower than fp32, and nobody would

            def run(kind: torch.dtype = kind) -> Tensor:
                with torch.autocast(device, kind, enabled=kind is not torch.float32, cache_enabled=False):
                    logits: Tensor = network(pictures)
                return logits

            rows[f"network {name} eager, batch {batch}"] = alone(run, exact, batch, device, seconds)
            if device == "cuda":
                replay = captured(run)
                rows[f"network {name} CUDA graph, batch {batch}"] = alone(replay, exact, batch, device, seconds)
    return rows


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
