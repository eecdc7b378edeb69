"""Chooses and makes the backend of a model: torch, OpenVINO with a fused kernel, or a graph file's backend."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from steadyseg.core.errors import InputError, shorten
from steadyseg.core.familiarity.record import reference_scores
from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.core.options import Every
from steadyseg.core.picture_size import network_size
from steadyseg.core.seeds import carry_seed
from steadyseg.core.segmenter import Backend
from steadyseg.core.system.machine import choose_device, cuda_precision, has_cuda, idle_gpu, require_device_name
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.runtime.cpu_backend import CpuBackend
from steadyseg.runtime.network_plan import StoredNetwork, head_stride
from steadyseg.runtime.networks import FrameNetwork, openvino_name
from steadyseg.runtime.number_format import choose_precision
from steadyseg.runtime.open_file import graph_backend
from steadyseg.runtime.options import BackendName, ComputeOptions, PrecisionName

if TYPE_CHECKING:
    import torch

TakeNetwork = Callable[[Hashable, Callable[[], FrameNetwork]], FrameNetwork]
"""(kind of network, its maker) -> a network that nobody else uses."""


@dataclass(frozen=True)
class RunOptions(ComputeOptions):
    """Options of a backend besides the method: the compute flags of a command, and what the command adds."""

    size: int | None = None
    """Height in pixels of the network's input; None for the model's height."""
    keep_probs: bool = False
    """Return the mean probabilities with the maps."""
    members: tuple[Model, ...] = ()
    """Further checkpoints: a deep ensemble."""
    every: Every = 1
    """The frames that the network runs on; the maps of the others are carried along the motion (runtime/every.py)."""


def backend(
    model: Model | OnnxFile,
    method: Method,
    run: RunOptions = RunOptions(),
    take: TakeNetwork | None = None,
) -> Backend:
    """Returns the fastest backend of the model here: torch, OpenVINO or ONNX Runtime.

    `take` may return networks that were compiled before. InputError if the model cannot run with these options.
    """
    for name, given, known in ("backend", run.backend, BackendName), ("precision", run.precision, PrecisionName):
        if given not in get_args(known):
            raise InputError(f"unknown {name} {shorten(given)}; choose from {', '.join(get_args(known))}")
    if not isinstance(model, Model):
        if run.size not in (None, model.meta.height):
            raise InputError(
                f"{model.path}: works at height {model.meta.height}, got size {run.size}; omit it or export it again"
            )
        return graph_backend(
            model,
            backend=run.backend,
            device=run.device,
            precision=run.precision,
            keep_probs=run.keep_probs,
        )
    chosen, precision, why = choose(model, method, run)
    if chosen == "torch":
        from steadyseg.runtime.torch_backend import torch_backend

        carry_seed()
        return torch_backend(
            model,
            method,
            members=run.members,
            size=run.size,
            device=choose_device(run.device),
            keep_probs=run.keep_probs,
            precision=precision,
            why=why,
        )
    return openvino_backend(model, method, precision, run, take, why)


def choose(model: Model, method: Method, run: RunOptions) -> tuple[str, str, str]:
    """(torch or openvino, number format, why) for a checkpoint. InputError if it cannot run with these options."""
    if run.backend == "onnxruntime":
        raise InputError(
            f"ONNX Runtime runs graph files: steadyseg export {model.name} --stateful -o model.onnx makes one"
        )
    if run.members and run.backend == "openvino":
        raise InputError("an ensemble is run by torch; omit backend openvino")
    chosen, why = choose_library(run.backend, run.device)
    if run.members:
        chosen, why = "torch", "runs ensembles"
    if chosen == "torch":
        return chosen, torch_precision(run.precision, choose_device(run.device)), why
    precision, reason = choose_precision(run.precision, model)
    return chosen, precision, "; ".join(filter(None, (why, reason)))


def choose_library(backend: str, device: str) -> tuple[str, str]:
    """(torch or openvino, why) for a checkpoint on this machine."""
    if backend == "torch":
        return "torch", "asked for"
    require_device_name(device)
    on_gpu = device.startswith("cuda") or (device == "auto" and has_cuda())
    if backend == "openvino":
        if on_gpu and device != "auto":
            raise InputError(f"the OpenVINO backend runs on the CPU, got device {device}")
        return "openvino", "asked for"
    if on_gpu:
        return "torch", "a GPU is there"
    idle = idle_gpu("torch finds no driver that fits its CUDA") if device == "auto" else ""
    return "openvino", f"the fastest on a CPU (docs/records/performance){idle}"


def torch_precision(precision: str, device: "torch.device") -> str:
    """Resolves the number format of torch; auto: the format of a GPU's tensor cores, fp32 on a CPU."""
    if precision == "int8":
        raise InputError("torch computes in fp32, bf16 or fp16; use backend openvino for precision int8")
    if precision != "auto":
        return precision
    return cuda_precision(device) if device.type == "cuda" else "fp32"


def openvino_backend(
    model: Model, method: Method, precision: str, run: RunOptions, take: TakeNetwork | None = None, why: str = ""
) -> CpuBackend:
    """Returns a backend that opens the checkpoint's network on OpenVINO for each size of frame; the fused kernel
    computes the rest. Torch is imported only where a network was not converted before."""
    meta = model.meta
    height = meta.height if run.size is None else run.size
    network_size(height, height, height)  # refuses a height out of range before any frame comes
    if precision == "int8":
        method = meta.method_in_int8(method)
    stored = StoredNetwork(model, method, precision)

    def network(height: int, width: int) -> FrameNetwork:
        def make() -> FrameNetwork:
            return stored.open(height, width)

        return take((model.name, stored.plan, height, width), make) if take else make()

    return CpuBackend(
        openvino_name(precision),
        network,
        lambda frame_height, frame_width: stored.nearest(*network_size(frame_height, frame_width, height)),
        meta.classes,
        method,
        (meta.height, meta.width),
        head_stride=head_stride(meta),
        keep_probs=run.keep_probs,
        reference=reference_scores(meta, method, precision),
        why=why,
    )
