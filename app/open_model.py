"""Any model a user can name -> the segmenter that runs it fastest here: checkpoints by torch or OpenVINO, graph files
too."""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from app.find_model import is_graph, refuse_classifier
from core.errors import InputError
from core.method import MethodOptions, draws_dropout
from core.model.checkpoint import CheckpointMeta
from core.model.int8 import round_convolutions
from core.novelty.opening import open_head
from core.predictors import SplitNetwork
from core.segmenter import Segmenter
from core.system.machine import choose_device
from export.run.cpu import CpuSegmenter
from export.run.networks import (
    FrameNetwork,
    OpenVinoNetwork,
    OpenVinoPasses,
    openvino_available,
    openvino_model,
    openvino_name,
)
from export.run.open_file import kernel_available, open_graph, resolve_precision
from seg.exported import DrawnPart, FrameToLogits, SharedPart
from seg.pretrained import find_checkpoint
from seg.streaming import StreamingSegmenter
from seg.torch_executor import open_network, open_torch_segmenter

if TYPE_CHECKING:
    from export.kernels.dropout_masks import DropoutMasks

ExecutorName = Literal["auto", "torch", "openvino", "onnxruntime"]
PrecisionName = Literal["auto", "fp32", "bf16", "int8"]
TakeNetwork = Callable[[Hashable, Callable[[], FrameNetwork]], FrameNetwork]
"""(kind of network, how to make one) -> a network that nobody else uses."""


def open_segmenter(
    model: str,
    options: MethodOptions = MethodOptions(),  # noqa: B008 (frozen)
    *,
    members: Sequence[str] = (),
    size: int | None = None,
    executor: ExecutorName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    keep_probs: bool = False,
    take: TakeNetwork | None = None,
) -> Segmenter:
    """Opens a pretrained name, a .safetensors file or an .onnx file of `steadyseg export --stateful`.

    `members`: further checkpoints, a deep ensemble. `size`: height in pixels at which the network works. `take` may
    hand out networks that were compiled before. A graph file computes what it was made for; InputError where more is
    asked of it.
    """
    if is_graph(model):
        if members or options.temperature is not None:
            raise InputError(
                f"{model}: a graph file holds one network with its temperature; use the checkpoints instead"
            )
        graph = open_graph(Path(model), executor=executor, device=device, precision=precision, keep_probs=keep_probs)
        options.require(graph.method, Path(model).name)
        if size not in (None, graph.size[0]):
            raise InputError(f"{model}: works at height {graph.size[0]}, got --size {size}; omit it or export it again")
        return graph
    refuse_classifier(model)
    if executor == "onnxruntime":
        raise InputError(f"ONNX Runtime runs graph files: steadyseg export {model} --stateful -o model.onnx makes one")
    if members and executor == "openvino":
        raise InputError("an ensemble is run by torch; omit --executor openvino")
    chosen, why = ("torch", "runs ensembles") if members else choose(executor, device, options.window)
    if chosen == "torch":
        where = choose_device(device)
        segmenter: Segmenter = open_torch_segmenter(
            model,
            options,
            members=members,
            size=size,
            device=where,
            keep_probs=keep_probs,
            precision=torch_precision(precision, where),
        )
    else:
        network, meta = open_network(model)
        number, and_why = choose_precision(precision, meta, model)
        if number == "int8":
            round_convolutions(network, meta.int8["ranges"])
            meta = meta.in_int8()
        why += and_why
        method = options.resolve(meta)
        head = open_head(find_checkpoint(model), meta, method)
        module = StreamingSegmenter(network, meta.mean, meta.std, size or meta.height, method, head)
        segmenter = on_openvino(module, meta, number, keep_probs, model, take)
    segmenter.why = why
    return segmenter


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
    return "openvino", "the fastest on a CPU (docs/studies/performance)"


def choose_precision(precision: str, meta: CheckpointMeta, model: str) -> tuple[str, str]:
    """(the number format of a checkpoint on OpenVINO, what is to be said of it); InputError for int8 without its
    ranges."""
    number = resolve_precision(precision, meta.int8_is_proven)
    if number != "int8":
        return number, ""
    if not meta.int8:
        raise InputError(
            f"--precision int8: {model} was not measured in it; steadyseg calibrate --int8 does, or omit it"
        )
    reason = "this processor has no bf16" if precision == "auto" else "asked for"
    return number, f"; int8: {reason}, and {meta.int8['labels_equal']:.1%} of the labels are fp32's"


def torch_precision(precision: str, device: torch.device) -> str:
    """auto: bf16 on a GPU, fp32 on a CPU."""
    if precision == "int8":
        raise InputError("torch computes in fp32 or bf16; use --executor openvino for --precision int8")
    return precision if precision != "auto" else "bf16" if device.type == "cuda" else "fp32"


def on_openvino(
    module: StreamingSegmenter,
    meta: CheckpointMeta,
    precision: str,
    keep_probs: bool = False,
    model: str = "",
    take: TakeNetwork | None = None,
) -> CpuSegmenter:
    """The network converted to OpenVINO for each size that comes; everything after it is the fused kernel's."""

    def network(height: int, width: int) -> FrameNetwork:
        def make() -> FrameNetwork:
            return (openvino_passes if shared else openvino_network)(module, height, width, precision)

        drawn = draws_dropout(module.method.mode)  # tau and temperature are the kernel's
        shared = module.method.samples > 1 and isinstance(module.predictor.get_submodule("network"), SplitNetwork)
        # Each adaptive method has a temperature of its own.
        watched = str(module.method) if module.method.adaptive else bool(module.head)
        return take((model, drawn, shared, watched, height, width, precision), make) if take else make()

    return CpuSegmenter(
        openvino_name(precision),
        network,
        module.size,
        meta.classes,
        module.method,
        (meta.height, meta.width),
        head_stride=module.head_stride,
        keep_probs=keep_probs,
        own_world=module.head.own_world if module.head else None,
    )


def openvino_network(module: StreamingSegmenter, height: int, width: int, precision: str) -> OpenVinoNetwork:
    """The network of a streaming module for frames of h x w; its dropout masks are drawn on the host, from torch's
    seed."""
    network = FrameToLogits(module)
    shapes = network.mask_shapes(height, width)
    return OpenVinoNetwork(
        openvino_model(network, zeros((1, height, width, 3), *shapes)), precision, masks_of(network, shapes)
    )


def openvino_passes(module: StreamingSegmenter, height: int, width: int, precision: str) -> OpenVinoPasses:
    """The same, cut before the first dropout layer, for several passes a frame."""
    network = FrameToLogits(module)
    shapes = network.mask_shapes(height, width)
    masks = masks_of(network, shapes)
    assert masks is not None  # several passes draw
    first = SharedPart(network)
    rest = DrawnPart(first, height, width)
    return OpenVinoPasses(
        openvino_model(first, zeros((1, height, width, 3))),
        openvino_model(rest, [*rest.example, *zeros(*shapes)]),
        precision,
        masks,
    )


def masks_of(network: FrameToLogits, shapes: Sequence[tuple[int, ...]]) -> "DropoutMasks | None":
    """What draws its masks."""
    from export.kernels.dropout_masks import DropoutMasks  # needs numba

    rates = [dropout.rate for dropout in network.dropouts]
    return DropoutMasks(shapes, rates, torch.initial_seed()) if shapes else None


def zeros(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    """Example inputs: a black frame, masks."""
    return [torch.zeros(shape, dtype=torch.uint8) for shape in shapes]
