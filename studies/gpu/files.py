"""Exported files on a device: which nodes it computes, parity with the CPU and with PyTorch, and speed."""

import contextlib
import io
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from steadyseg.core.errors import CheckFailed
from steadyseg.core.frame import Frame
from steadyseg.core.segmenter import Backend, Segmenter
from steadyseg.export.file.onnx_file import OnnxFile, read_onnx
from steadyseg.export.file.sessions import PROVIDERS, cpu_session, import_onnxruntime, open_session, runner_of
from steadyseg.runtime.carried_proof import graph_step, read_proof, verify
from steadyseg.runtime.graph_backend import GraphBackend, GraphStream
from steadyseg.runtime.kernels.resize import resize_frame
from steadyseg.street.drive import Street

Row = dict[str, Any]
WARM_UP = 3
STATEFUL = ("--stateful", "--with-proof", "--motion", "off")
KINDS = {
    "plain": (),
    "fp32": STATEFUL,
    "fp16": (*STATEFUL, "--precision", "fp16"),
}
"""Flags of the export, by kind of file."""
FULL = {"use_tf32": "0"}
"""Option of the CUDA provider: products of convolutions in fp32 instead of TF32."""
FRAMES = 16
LABELS_EXACT, LABELS = 0.999, 0.98
"""Smallest shares of labels that are equal to the CPU's in fp32: in the same arithmetic, and in fewer bits."""
EXACT = 1e-3
"""Largest difference of a logit, relative to the largest logit, between two devices in fp32."""


@dataclass(frozen=True)
class Place:
    """Where the rows are measured, and on what."""

    device: str
    runs: Path
    """Folder of the exported files."""
    model: str = "camvid-mobile"
    seconds: float = 2.0
    """Of each timing."""
    size: int = 360
    """Height in pixels of the trained networks' input."""
    limit_s: int = 120
    """Of a row, after which its process is ended."""

    @cached_property
    def stream(self) -> list[Frame]:
        """The first frames of the drawn street."""
        return list(Street().frames(FRAMES))

    @cached_property
    def expected(self) -> list[np.ndarray]:
        """The labels of the stream: the fp32 file's on the CPU, which the file's proof compares with PyTorch's."""
        file = self.exported("fp32")
        return labels_of(GraphBackend(file.data, file.meta, "cpu"), self.stream)

    def exported(self, kind: str) -> OnnxFile:
        """The file of this kind; where it is missing it is exported first, which needs the command line's packages."""
        file = self.runs / f"{self.model}-{kind}.onnx"
        if not file.exists():
            from steadyseg.app.cli import main as steadyseg

            with contextlib.redirect_stdout(io.StringIO()):
                code = steadyseg(["export", self.model, "-o", str(file), *KINDS[kind]])
            if code:
                raise CheckFailed(f"the export of {file} ended with exit code {code}")
        return read_onnx(file)


def nodes(place: Place) -> Row:
    """The fp32 file's nodes by the provider that computes them. ONNX Runtime gives the CPU, silently, what a device
    cannot compute: shapes may go there, a convolution may not."""
    data, provider = place.exported("fp32").data, PROVIDERS[place.device]
    session, _ = open_session(data, place.device)
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    again = runtime.InferenceSession(data, options, providers=session.get_providers(), enable_fallback=0)
    found: dict[str, Counter[str]] = {}
    for part in again.get_provider_graph_assignment_info():
        found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    elsewhere = {name: dict(kinds) for name, kinds in found.items() if name != provider}
    if provider not in found or any("Conv" in kind for kinds in elsewhere.values() for kind in kinds):
        raise CheckFailed(f"{provider} was asked for, and others compute {elsewhere}")
    return {"onnxruntime": runtime.__version__, provider: found[provider].total(), "elsewhere": elsewhere}


def plain(place: Place) -> Row:
    """The network alone: its logits of a frame beside the CPU's, both in fp32."""
    file = place.exported("plain")
    meta, picture = file.meta, resize_frame(place.stream[0].image, (file.meta.height, file.meta.width))
    given = ((picture / 255 - meta.mean) / meta.std).astype(np.float32).transpose(0, 3, 1, 2)
    session, device = open_session(file.data, place.device, FULL)
    run, name = runner_of(session), session.get_inputs()[0].name
    (found,), (expected,) = (side({name: given}).values() for side in (run, runner_of(cpu_session(file.data))))
    equal = float((found.argmax(1) == expected.argmax(1)).mean())
    apart = float(np.abs(found - expected).max() / np.abs(expected).max())
    row = {"device": device, "labels_equal": equal, "logits_apart": apart}
    if not (equal >= LABELS_EXACT and apart <= EXACT and device == place.device):
        raise CheckFailed(f"{row}; labels_equal must be {LABELS_EXACT} or more, logits_apart {EXACT} or less")
    return row | timed(lambda: run({name: given}), place.seconds)


def proven(place: Place, kind: str, reduced: bool) -> Row:
    """The differences to PyTorch on a CPU that a file's proof finds; `reduced`: by the bounds of fewer bits."""
    file = place.exported(kind)
    proof = read_proof(file.props, file.meta, file.path.name)
    stream = GraphStream(file.data, file.meta, place.device, {} if reduced else FULL)
    result = verify(proof, file.meta, graph_step(stream), reduced=reduced)
    if not result.holds or stream.device != place.device:
        raise CheckFailed(f"on {stream.device}: {result}")
    return {"device": stream.device, **result.found, "call_ms": result.frame_ms}


def speed(place: Place, kind: str) -> Row:
    """Frames a second of a stateful file."""
    file = place.exported(kind)
    return whole_step(place, GraphBackend(file.data, file.meta, place.device))


def whole_step(place: Place, backend: Backend) -> Row:
    """Frames a second of whole steps, from the picture to its maps, and how many labels equal the expected ones."""
    found = labels_of(backend, place.stream)
    equal = float(np.mean([np.mean(one == other) for one, other in zip(found, place.expected, strict=True)]))
    if equal < LABELS or backend.device != place.device:
        raise CheckFailed(f"on {backend.device} {equal:.2%} of the labels are equal, expected {LABELS:.0%}")
    return {"backend": backend.name, "labels_equal": equal, **rate(place, backend)}


def rate(place: Place, backend: Backend) -> Row:
    """Frames a second of the stream, again and again."""
    segmenter, frames = Segmenter(backend), cycle(place.stream)
    return timed(lambda: segmenter.step(next(frames)), place.seconds)


def labels_of(backend: Backend, stream: Sequence[Frame]) -> list[np.ndarray]:
    segmenter = Segmenter(backend)
    return [segmenter.step(frame).label.copy() for frame in stream]


def timed(step: Callable[[], Any], seconds: float) -> Row:
    """Calls a second by the median call, over so many seconds and three calls at least."""
    for _ in range(WARM_UP):
        step()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    ordered = sorted(times)
    return {
        "latency_p50_ms": 1e3 * median(times),
        "latency_p95_ms": 1e3 * ordered[int(0.95 * (len(ordered) - 1))],
        "frames_per_s": 1 / median(times),
        "calls": len(times),
    }
