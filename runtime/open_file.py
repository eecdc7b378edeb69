"""Chooses the backend that runs a graph file fastest here."""

from steadyseg.core.errors import InputError
from steadyseg.core.segmenter import Backend
from steadyseg.core.system.machine import idle_gpu
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.export.file.sessions import read_openvino, require_runtime, why_no_gpu
from steadyseg.export.file.subgraph import network_of
from steadyseg.runtime.cpu_backend import CpuBackend
from steadyseg.runtime.graph_backend import GraphBackend
from steadyseg.runtime.networks import (
    FrameNetwork,
    OnnxRuntimeNetwork,
    OpenVinoNetwork,
    onnxruntime_name,
    openvino_name,
)
from steadyseg.runtime.number_format import resolve_precision


def graph_backend(
    file: OnnxFile,
    *,
    backend: str = "auto",
    device: str = "auto",
    precision: str = "auto",
    keep_probs: bool = False,
) -> Backend:
    """Returns the backend that runs a stateful file fastest here. InputError for another number format than the
    file's."""
    require_runtime(backend, device)
    if precision == "fp16":
        raise InputError("a graph file computes in its own format: steadyseg export --precision fp16 makes one")
    if precision == "int8":
        raise InputError("precision int8 is for checkpoints, and this is a graph file; omit it")
    chosen, why = choose_runtime(file.meta, backend, device)
    if precision == "bf16" and chosen != "openvino":
        raise InputError("ONNX Runtime has no bf16 on the CPU; use backend openvino or precision auto")
    if chosen != "graph":
        return _host(file, chosen, precision, keep_probs, why)
    return GraphBackend(file.data, file.meta, device, keep_probs=keep_probs, why=why)


def require_stream(file: OnnxFile) -> None:
    """Raises InputError for a graph file that does not segment a stream."""
    if file.meta.kind == "classifier":
        raise InputError(
            f"{file.path}: holds an image classifier, which segments nothing; steadyseg evaluate measures it"
        )
    if file.meta.kind != "stream":
        raise InputError(f"{file.path}: holds the network alone; steadyseg export --stateful makes one for video")


def choose_runtime(meta: GraphMeta, backend: str, device: str) -> tuple[str, str]:
    """(openvino, onnxruntime or graph; why): on a CPU, the fused kernel after the network wins for one pass a
    frame."""
    fusable = meta.method.samples == 1
    if backend == "openvino":
        if not fusable:
            raise InputError(
                "the OpenVINO backend runs graph files of one pass a frame; use backend onnxruntime for several"
            )
        return "openvino", "asked for"
    if device == "cuda" or (device == "auto" and not why_no_gpu()):
        return "graph", "a GPU runs the whole graph"
    idle = idle_gpu(why_no_gpu()) if device == "auto" else ""
    if not fusable:
        return "graph", f"several passes need the whole graph{idle}"
    if backend == "onnxruntime":
        return "onnxruntime", f"asked for{idle}"
    return "openvino", f"the fastest on a CPU (docs/records/performance){idle}"


def _host(file: OnnxFile, chosen: str, precision: str, keep_probs: bool, why: str) -> CpuBackend:
    meta = file.meta
    on_openvino = chosen == "openvino"
    number = resolve_precision(precision) if on_openvino else meta.precision

    def open_network(height: int, width: int) -> FrameNetwork:
        data = network_of(file.model, height, width).SerializeToString()
        return OpenVinoNetwork(read_openvino(data), number) if on_openvino else OnnxRuntimeNetwork(data, number)

    return CpuBackend(
        openvino_name(number) if on_openvino else onnxruntime_name(number),
        open_network,
        lambda height, width: (meta.height, meta.width),
        meta.classes,
        meta.method,
        (meta.height, meta.width),
        head_stride=meta.head_stride,
        keep_probs=keep_probs,
        reference=meta.reference,
        why=why,
    )
