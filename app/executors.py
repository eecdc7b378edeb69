"""Chooses and makes the executor of a model: torch, OpenVINO with a fused kernel, or a graph file's executor."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch

from steadyseg.app.flags import ComputeOptions, ExecutorName, PrecisionName
from steadyseg.app.number_format import choose_precision
from steadyseg.core.errors import InputError
from steadyseg.core.method import Method, draws_dropout
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.int8 import round_convolutions
from steadyseg.core.model.model import Model
from steadyseg.core.predictors import SplitNetwork
from steadyseg.core.segmenter import Executor
from steadyseg.core.system.machine import choose_device, cuda_precision, idle_gpu, require_device_name
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.export.run.cpu import CpuExecutor, OpenNetwork
from steadyseg.export.run.networks import (
    FrameNetwork,
    OpenVinoNetwork,
    OpenVinoPasses,
    openvino_available,
    openvino_model,
    openvino_name,
)
from steadyseg.export.run.open_file import graph_executor, kernel_available
from steadyseg.seg.exported import DrawnPart, FrameToLogits, SharedPart
from steadyseg.seg.of_model import streaming_module
from steadyseg.seg.streaming import StreamingSegmenter
from steadyseg.seg.torch_executor import torch_executor

TakeNetwork = Callable[[Hashable, Callable[[], FrameNetwork]], FrameNetwork]
"""(kind of network, its maker) -> a network that nobody else uses."""


@dataclass(frozen=True)
class RunOptions:
    """Options of an executor besides the method: library, number format, device, size."""

    executor: ExecutorName = "auto"
    precision: PrecisionName = "auto"
    device: str = "auto"
    size: int | None = None
    """Height in pixels of the network's input; None for the model's height."""
    keep_probs: bool = False
    """Return the mean probabilities with the maps."""
    members: tuple[Model, ...] = ()
    """Further checkpoints: a deep ensemble."""
    provider_options: tuple[str, ...] = ()
    """NAME=VALUE of ONNX Runtime's CUDA provider, for a graph file on a GPU."""


def run_options(compute: ComputeOptions, size: int | None = None, *, keep_probs: bool) -> RunOptions:
    """Returns the executor's options for the compute flags of a command."""
    asked = compute.provider_options
    return RunOptions(compute.executor, compute.precision, compute.device, size, keep_probs, provider_options=asked)


def executor(
    model: Model | OnnxFile,
    method: Method,
    run: RunOptions = RunOptions(),
    take: TakeNetwork | None = None,
) -> Executor:
    """Returns the fastest executor of the model here: torch, OpenVINO or ONNX Runtime.

    `take` may return networks that were compiled before. InputError if the model cannot run with these options.
    """
    if not isinstance(model, Model):
        if run.size not in (None, model.meta.height):
            raise InputError(
                f"{model.path}: works at height {model.meta.height}, got --size {run.size}; omit it or export it again"
            )
        return graph_executor(
            model,
            executor=run.executor,
            device=run.device,
            precision=run.precision,
            keep_probs=run.keep_probs,
            provider_options=run.provider_options,
        )
    chosen, precision, why = choose(model, method, run)
    if chosen == "torch":
        return torch_executor(
            model,
            method,
            members=run.members,
            size=run.size,
            device=choose_device(run.device),
            keep_probs=run.keep_probs,
            precision=precision,
            why=why,
        )
    network = model.network()
    if precision == "int8":
        round_convolutions(network, model.meta.int8["ranges"])
        model, method = model.with_record(model.meta.in_int8()), model.meta.method_in_int8(method)
    module = streaming_module(model, method, network=network, size=run.size)
    return openvino_executor(module, model.meta, precision, run.keep_probs, model.name, take, why)


def choose(model: Model, method: Method, run: RunOptions) -> tuple[str, str, str]:
    """(torch or openvino, number format, why) for a checkpoint. InputError if it cannot run with these options."""
    if run.provider_options:
        raise InputError(f"{model.name}: a checkpoint; provider_options are for .onnx files on a GPU, omit them")
    if run.executor == "onnxruntime":
        raise InputError(
            f"ONNX Runtime runs graph files: steadyseg export {model.name} --stateful -o model.onnx makes one"
        )
    if run.members and run.executor == "openvino":
        raise InputError("an ensemble is run by torch; omit --executor openvino")
    late_passes = method.lag and method.samples > 1
    if late_passes and run.executor == "openvino":
        raise InputError("a lag with several passes a frame is computed by torch; omit --executor openvino")
    chosen, why = choose_library(run.executor, run.device)
    if run.members or late_passes:
        chosen, why = "torch", "runs ensembles" if run.members else "runs a lag with several passes"
    if chosen == "torch":
        return chosen, torch_precision(run.precision, choose_device(run.device)), why
    precision, reason = choose_precision(run.precision, model)
    return chosen, precision, "; ".join(filter(None, (why, reason)))


def choose_library(executor: str, device: str) -> tuple[str, str]:
    """(torch or openvino, why) for a checkpoint on this machine."""
    if executor == "torch":
        return "torch", "asked for"
    require_device_name(device)
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    if executor == "openvino":
        if on_gpu and device != "auto":
            raise InputError(f"the OpenVINO executor runs on the CPU, got --device {device}")
        if not kernel_available():
            raise InputError("the OpenVINO executor needs numba for its maps: pip install 'steadyseg[export]'")
        return "openvino", "asked for"
    if on_gpu:
        return "torch", "a GPU is there"
    idle = idle_gpu("torch finds no driver that fits its CUDA") if device == "auto" else ""
    if not (openvino_available() and kernel_available()):
        lacking = "OpenVINO and numba, which are faster, are not installed: pip install 'steadyseg[export]'"
        return "torch", lacking + idle
    return "openvino", f"the fastest on a CPU (docs/studies/performance){idle}"


def torch_precision(precision: str, device: torch.device) -> str:
    """Resolves the number format of torch; auto: the format of a GPU's tensor cores, fp32 on a CPU."""
    if precision == "int8":
        raise InputError("torch computes in fp32, bf16 or fp16; use --executor openvino for --precision int8")
    if precision != "auto":
        return precision
    return cuda_precision(device) if device.type == "cuda" else "fp32"


def openvino_executor(
    module: StreamingSegmenter,
    meta: CheckpointMeta,
    precision: str,
    keep_probs: bool = False,
    model: str = "",
    take: TakeNetwork | None = None,
    why: str = "",
) -> CpuExecutor:
    """Returns an executor that converts the network to OpenVINO for each size of frame; the fused kernel computes the
    rest."""

    def network(height: int, width: int) -> FrameNetwork:
        def make() -> FrameNetwork:
            return openvino_network(module, height, width, precision, shared)

        drawn = draws_dropout(module.method.mode)  # the kernel has tau and temperature
        shared = module.method.samples > 1 and isinstance(module.predictor.get_submodule("network"), SplitNetwork)
        # Each adaptive method has its own temperature.
        watched = str(module.method) if module.method.adaptive else bool(module.head)
        return take((model, drawn, shared, watched, height, width, precision), make) if take else make()

    return cpu_executor(openvino_name(precision), network, module, meta, keep_probs, why)


def cpu_executor(
    name: str,
    open_network: OpenNetwork,
    module: StreamingSegmenter,
    meta: CheckpointMeta,
    keep_probs: bool,
    why: str,
) -> CpuExecutor:
    """Returns an executor with the method, sizes and reference scores of a streaming module."""
    return CpuExecutor(
        name,
        open_network,
        module.size,
        meta.classes,
        module.method,
        (meta.height, meta.width),
        head_stride=module.head_stride,
        keep_probs=keep_probs,
        reference=module.head.reference if module.head else None,
        why=why,
    )


def openvino_network(
    module: StreamingSegmenter, height: int, width: int, precision: str, shared: bool = False
) -> FrameNetwork:
    """The network of a streaming module for frames of h x w; the host draws its dropout masks, from torch's seed.

    `shared`: cut before its first dropout layer, for several forward passes per frame.
    """
    from steadyseg.export.kernels.dropout_masks import DropoutMasks  # needs numba

    network = FrameToLogits(module)
    shapes, rates = network.mask_shapes(height, width), [dropout.rate for dropout in network.dropouts]
    masks = DropoutMasks(shapes, rates, torch.initial_seed()) if shapes else None
    frame, *blank = (torch.zeros(shape, dtype=torch.uint8) for shape in ((1, height, width, 3), *shapes))
    if not shared:
        return OpenVinoNetwork(openvino_model(network, [frame, *blank]), precision, masks)
    assert masks is not None  # several passes draw
    first = SharedPart(network)
    rest = DrawnPart(first, height, width)
    models = openvino_model(first, [frame]), openvino_model(rest, [*rest.example, *blank])
    return OpenVinoPasses(*models, precision, masks)
