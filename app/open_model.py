"""Any model a user can name -> the segmenter that runs it fastest here: checkpoints by torch or OpenVINO, graph files too."""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Literal

import torch

from app.find_model import refuse_classifier
from core.device import choose_device
from core.errors import InputError
from core.segmenter import Segmenter
from export.cpu_segmenter import CpuSegmenter
from export.networks import FrameNetwork, OpenVinoNetwork, openvino_available, openvino_model, openvino_name
from export.open_file import kernel_available, open_graph, resolve_precision
from seg.exported import FrameToLogits
from seg.options import ModeName
from seg.streaming import MODES, StreamingSegmenter
from seg.torch_segmenter import TorchSegmenter, open_segmenter

ExecutorName = Literal["auto", "torch", "openvino", "onnxruntime"]
PrecisionName = Literal["auto", "fp32", "bf16"]
TakeNetwork = Callable[[Hashable, Callable[[], FrameNetwork]], FrameNetwork]
"""(kind of network, how to make one) -> a network that nobody else uses."""


def open_model(
    model: str,
    *,
    members: Sequence[str] = (),
    mode: ModeName | None = None,
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    motion: bool | None = None,
    size: int | None = None,
    calibrated: bool | None = None,
    temperature: float | None = None,
    executor: ExecutorName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    keep_probs: bool = False,
    take: TakeNetwork | None = None,
) -> tuple[Segmenter, str]:
    """(segmenter, why this executor). None leaves a setting to the model: for checkpoints vq-dnn that follows motion, what it
    was made for in a graph file, where another value is bad input. `take` may hand out networks compiled before."""
    if model.endswith(".onnx"):
        if members or temperature is not None:
            raise InputError(
                f"{model}: a graph file holds one network with its temperature; use the checkpoints instead"
            )
        segmenter, why = open_graph(
            Path(model), executor=executor, device=device, precision=precision, keep_probs=keep_probs
        )
        refuse_other_settings(model, segmenter, mode, samples, tau, window, motion, size, calibrated)
        return segmenter, why
    refuse_classifier(model)
    if executor == "onnxruntime":
        raise InputError(f"ONNX Runtime runs graph files: steadyseg export {model} --stateful -o model.onnx makes one")
    mode = mode or "vq-dnn"
    motion = follows_motion(mode, window, motion)
    if members and executor == "openvino":
        raise InputError("an ensemble is run by torch; omit --executor openvino")
    chosen, why = ("torch", "runs ensembles") if members else choose(executor, device, window)
    if chosen == "torch":
        where = choose_device(device)
        return open_segmenter(
            model, members=members, mode=mode, samples=samples, tau=tau, window=window, motion=motion, size=size,
            calibrated=calibrated, temperature=temperature, device=where,
            keep_probs=keep_probs, precision=torch_precision(precision, where),
        ), why  # fmt: skip
    source = open_segmenter(
        model, mode=mode, samples=samples, tau=tau, window=window, motion=motion, size=size, calibrated=calibrated,
        temperature=temperature,
    )  # fmt: skip
    return on_openvino(source, resolve_precision(precision), keep_probs, model, take), why


def choose(executor: str, device: str, window: int | None) -> tuple[str, str]:
    """(torch or openvino, why) for a checkpoint."""
    if executor == "torch":
        return "torch", "asked for"
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    if executor == "openvino":
        if on_gpu and device != "auto":
            raise InputError(f"the OpenVINO executor runs on the CPU, got --device {device}")
        if window is not None:
            raise InputError("the OpenVINO executor computes the recursion; use --executor torch for a window")
        if not kernel_available():
            raise InputError("the OpenVINO executor needs numba for its maps: pip install 'steadyseg[export]'")
        return "openvino", "asked for"
    if on_gpu:
        return "torch", "a GPU is there"
    if window is not None:
        return "torch", "it alone computes windows"
    if not (openvino_available() and kernel_available()):
        return "torch", "OpenVINO and numba, which are faster, are not installed: pip install 'steadyseg[export]'"
    return "openvino", "the fastest on a CPU (docs/performance.md)"


def follows_motion(mode: str, window: int | None, asked: bool | None) -> bool:
    """Where nothing is asked the mean of a vq mode follows motion, but for a window, which cannot."""
    if asked and not mode.startswith("vq-"):
        raise InputError(f"mode {mode} has no memory of earlier frames that could follow motion; use mode vq-{mode}")
    return (mode.startswith("vq-") and window is None) if asked is None else asked


def torch_precision(precision: str, device: torch.device) -> str:
    """auto: bf16 on a GPU, fp32 on a CPU."""
    return precision if precision != "auto" else "bf16" if device.type == "cuda" else "fp32"


def on_openvino(
    source: TorchSegmenter, precision: str, keep_probs: bool, model: str = "", take: TakeNetwork | None = None
) -> CpuSegmenter:
    """A checkpoint's network converted to OpenVINO for each size that comes; everything after it is the fused kernel's."""
    module = source.module

    def network(height: int, width: int) -> FrameNetwork:
        def make() -> FrameNetwork:
            return openvino_network(module, height, width, precision)

        drawn = MODES[module.mode].dropout  # tau, temperature and the number of passes are the kernel's
        return take((model, drawn, height, width, precision), make) if take else make()

    return CpuSegmenter(
        openvino_name(precision), network, module.size, source.classes, source.method,
        temperature=module.temperature, head_stride=module.head_stride, keep_probs=keep_probs,
    )  # fmt: skip


def openvino_network(module: StreamingSegmenter, height: int, width: int, precision: str) -> OpenVinoNetwork:
    """The network of a streaming module for frames of h x w; its dropout masks are drawn on the host, from torch's seed."""
    from export.kernels.dropout_masks import DropoutMasks

    network = FrameToLogits(module)
    shapes = network.mask_shapes(height, width)
    example = [torch.zeros(shape, dtype=torch.uint8) for shape in ((1, height, width, 3), *shapes)]
    masks = (
        DropoutMasks(shapes, [dropout.rate for dropout in network.dropouts], torch.initial_seed()) if shapes else None
    )
    return OpenVinoNetwork(openvino_model(network, example), precision, masks)


def refuse_other_settings(
    model: str,
    segmenter: Segmenter,
    mode: ModeName | None,
    samples: int | None,
    tau: float | None,
    window: int | None,
    motion: bool | None,
    size: int | None,
    calibrated: bool | None,
) -> None:
    """A graph file computes what it was made for."""
    made, name = segmenter.method, Path(model).name
    for flag, asked, has in (
        ("mode", mode, made.mode), ("samples", samples, made.samples), ("tau", tau, made.tau),
        ("window", window, made.window), ("motion", motion, made.motion), ("size", size, made.height),
        ("calibrated", calibrated, made.calibrated),
    ):  # fmt: skip
        if asked is not None and asked != has:
            again = "" if flag == "calibrated" else f" with --{flag} {asked}"
            raise InputError(f"{name}: was made for {flag} {has}, got {asked}; omit --{flag} or export it again{again}")
