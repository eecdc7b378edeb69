"""Any model a user can name -> the segmenter that runs it fastest here: checkpoints by torch or OpenVINO, graph files too."""

from pathlib import Path
from typing import Literal

import torch

from core.device import choose_device
from core.errors import InputError
from core.segmenter import Segmenter
from export.host_segmenter import HostSegmenter
from export.networks import OpenVinoNetwork, openvino_available, openvino_model, openvino_name
from export.open_file import kernel_available, open_graph, resolved_precision
from seg.exported import FrameToLogits
from seg.options import ModeName
from seg.streaming import StreamingSegmenter
from seg.torch_segmenter import TorchSegmenter, open_segmenter

ExecutorName = Literal["auto", "torch", "openvino", "onnxruntime"]
PrecisionName = Literal["auto", "fp32", "bf16"]


def open_model(
    model: str,
    *,
    mode: ModeName | None = None,
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    size: int | None = None,
    calibrated: bool | None = None,
    executor: ExecutorName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    keep_probs: bool = False,
) -> tuple[Segmenter, str]:
    """(segmenter, why this executor). None leaves a setting to the model: vq-dnn and tau 1.25 for checkpoints, what it was
    made for in a graph file, where another value is bad input."""
    if model.endswith(".onnx"):
        segmenter, why = open_graph(
            Path(model), executor=executor, device=device, precision=precision, keep_probs=keep_probs
        )
        refuse_other_settings(model, segmenter, mode, samples, tau, window, size, calibrated)
        return segmenter, why
    if executor == "onnxruntime":
        raise InputError(f"ONNX Runtime runs graph files: steadyseg export {model} --stateful -o model.onnx makes one")
    mode = mode or "vq-dnn"
    chosen, why = choose(executor, device, window)
    if chosen == "torch":
        where = choose_device(device)
        return open_segmenter(
            model, mode=mode, samples=samples, tau=tau or 1.25, window=window, size=size, calibrated=calibrated,
            device=where, keep_probs=keep_probs, precision=torch_precision(precision, where),
        ), why  # fmt: skip
    source = open_segmenter(
        model, mode=mode, samples=samples, tau=tau or 1.25, window=window, size=size, calibrated=calibrated
    )
    return on_openvino(source, resolved_precision(precision), keep_probs), why


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


def torch_precision(precision: str, device: torch.device) -> str:
    """auto: bf16 on a GPU, fp32 on a CPU."""
    return precision if precision != "auto" else "bf16" if device.type == "cuda" else "fp32"


def on_openvino(source: TorchSegmenter, precision: str, keep_probs: bool) -> HostSegmenter:
    """A checkpoint's network converted to OpenVINO for each size that comes; everything after it is the fused kernel's."""
    module = source.module
    return HostSegmenter(
        openvino_name(precision), lambda height, width: openvino_network(module, height, width, precision), module.size,
        source.classes, source.method, temperature=module.temperature, head_stride=module.head_stride, keep_probs=keep_probs,
    )  # fmt: skip


def openvino_network(module: StreamingSegmenter, height: int, width: int, precision: str) -> OpenVinoNetwork:
    """The network of a streaming module for frames of h x w; its dropout masks are drawn on the host, from torch's seed."""
    from core.host_masks import HostMasks

    network = FrameToLogits(module)
    shapes = network.mask_shapes(height, width)
    example = [torch.zeros(shape, dtype=torch.uint8) for shape in ((1, height, width, 3), *shapes)]
    masks = HostMasks(shapes, [dropout.rate for dropout in network.dropouts], torch.initial_seed()) if shapes else None
    return OpenVinoNetwork(openvino_model(network, example), precision, masks)


def refuse_other_settings(
    model: str,
    segmenter: Segmenter,
    mode: ModeName | None,
    samples: int | None,
    tau: float | None,
    window: int | None,
    size: int | None,
    calibrated: bool | None,
) -> None:
    """A graph file computes what it was made for."""
    made, name = segmenter.method, Path(model).name
    for flag, asked, has in (
        ("mode", mode, made.mode), ("samples", samples, made.samples), ("tau", tau, made.tau),
        ("window", window, made.window), ("size", size, made.height), ("calibrated", calibrated, made.calibrated),
    ):  # fmt: skip
        if asked is not None and asked != has:
            again = "" if flag == "calibrated" else f" with --{flag} {asked}"
            raise InputError(
                f"{name}: was made for {flag} {has}, got {asked}; leave --{flag} away or export it again{again}"
            )
