"""A torch module with the ONNX graph traced from it, which is proven, converted to fp16, and written."""

import importlib.util
import inspect
import logging
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

from steadyseg.core.errors import InputError, first_line, refuse_existing
from steadyseg.core.system.files import write_atomic
from steadyseg.core.tracing import Signature, tracing
from steadyseg.export.file.metadata import GraphMeta, PrecisionName
from steadyseg.export.file.onnx_file import check_onnx
from steadyseg.export.file.sessions import Runner, session_runner
from steadyseg.export.write.precision import rounding, to_fp16
from steadyseg.export.write.proof import (
    BOUNDS,
    DRAWS,
    Parity,
    RandomProof,
    StreamProof,
    ValueProof,
    compare_draws,
    measure_parity,
    network_pairs,
    prove_network,
    prove_stream,
    require_parity,
)
from steadyseg.export.write.stream_run import frame_inputs, stream_pairs

OPSET = 20
"""Resize with antialias needs opset 18; ONNX Runtime 1.17 and OpenVINO 2024 read opset 20 already."""
MAX_SIZE = 8192
"""Largest value of a free size, in pixels or pictures."""


@dataclass(frozen=True)
class Traced:
    """A torch module and its graph: a stream, the network alone, or a classifier."""

    module: nn.Module
    graph: Any
    """`onnx.ModelProto` without metadata."""
    signature: Signature
    masked: "Traced | None" = None
    """Module and graph with the dropout masks as inputs, so that a proof gives both sides equal masks; else None."""
    precision: PrecisionName = "fp32"

    @property
    def runner(self) -> Runner:
        """The graph as a function of named arrays on the CPU, with every value rounded to its number format."""
        return session_runner(rounding(self.graph) if self.precision == "fp16" else self.graph)

    @property
    def has_ties(self) -> bool:
        """True if the network acts on which of two values is larger, as SegNet's unpooling does. If rounding decides, a
        few probabilities differ by far more than rounding."""
        return any(getattr(module, "has_ties", False) for module in self.module.modules())

    def prove(self, images: Iterable[np.ndarray]) -> StreamProof | ValueProof | Parity:
        """Compares the graph with the module; raises CheckFailed where they differ by more than the precision explains.

        images: frames (h, w, 3) uint8 of a stream, or normalised images (N, 3, h, w) float32 of the network alone.
        """
        if self.masked:
            return self.masked.prove(images)
        is_stream = "frame" in self.signature.inputs
        probs = self.signature.outputs[4] if is_stream else "probs"  # in a stream, the output after the four maps
        pairs = (
            stream_pairs(self.module, self.runner, self.signature, images)
            if is_stream
            else network_pairs(self.module, self.runner, images)
        )
        if self.precision == "fp32" and not self.has_ties:
            return prove_stream(pairs, probs) if is_stream else prove_network(pairs)
        parity = measure_parity(pairs, probs)
        require_parity(parity, BOUNDS[self.precision], self.precision)
        return parity

    def prove_draws(self, frame: np.ndarray) -> RandomProof:
        """Compares mean and variance of the probabilities of one frame (h, w, 3) uint8 over draws of the masks.

        Each draw begins the stream anew. Raises CheckFailed where the moments differ.
        """
        names, outputs = self.signature.inputs, self.signature.outputs
        tensors = dict(zip(names, self.signature.example, strict=True))
        tensors |= frame_inputs(frame, 1, starts=True)
        arrays = {name: value.numpy() for name, value in tensors.items()}
        with torch.no_grad():
            drawn = [self.module(*tensors.values())[4].numpy() for _ in range(DRAWS)]
        run = session_runner(self.graph)
        return compare_draws(drawn, [run(arrays)[outputs[4]] for _ in range(DRAWS)])

    def in_fp16(self) -> "Traced":
        """Returns the graph with its network in fp16."""
        masked = self.masked.in_fp16() if self.masked else None
        return replace(self, graph=to_fp16(self.graph), masked=masked, precision="fp16")

    def model(self, meta: GraphMeta, more: Mapping[str, str] | None = None) -> Any:
        """Returns a copy of the graph with its metadata and `more` entries."""
        model = onnx.ModelProto()
        model.CopyFrom(self.graph)
        for key, value in {**(more or {}), **meta.to_props()}.items():
            model.metadata_props.add(key=key, value=value)
        return model


def trace(module: nn.Module, signature: Signature, masked: Traced | None = None) -> Traced:
    """Traces a module into a graph with the names and free sizes of `signature`."""
    return Traced(module, to_onnx(module, signature), signature, masked)


@tracing()
def to_onnx(module: nn.Module, signature: Signature) -> Any:
    """Returns the `onnx.ModelProto` of module(*signature.example), all tensors inside.

    InputError for a module that torch cannot export.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        level = logging.getLogger("torch.onnx").level
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        try:
            exported = torch.onnx.export(
                exported_program(module, signature),
                dynamo=True,
                input_names=list(signature.inputs),
                output_names=list(signature.outputs),
                opset_version=OPSET,
                verbose=False,
            )
        except (RuntimeError, ValueError, NotImplementedError) as error:  # torch's exporter raises many classes
            raise InputError(f"torch cannot export this network ({first_line(error)}); no file was written") from error
        finally:
            logging.getLogger("torch.onnx").setLevel(level)
    assert exported is not None
    model = exported.model_proto
    inner = [value for value in model.graph.output if value.name in signature.inner]
    for value in inner:
        model.graph.output.remove(value)
        model.graph.value_info.append(value)
    name_sizes(model.graph, signature)
    onnx.checker.check_model(model)
    return model


def name_sizes(graph: Any, signature: Signature) -> None:
    """Gives free sizes the signature's names, in place of the symbols that torch invents."""
    sizes = {value.name: value.type.tensor_type.shape.dim for value in graph.input}
    names = {
        sizes[key][axis].dim_param: name for key, free in signature.free_sizes.items() for axis, name in free.items()
    }
    for value in (*graph.input, *graph.output, *graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param in names:
                size.dim_param = names[size.dim_param]


def exported_program(module: nn.Module, signature: Signature) -> torch.export.ExportedProgram:
    """Returns torch's own graph of the module, with the signature's free sizes as symbols.

    The symbols are hints. For the whole range of a named `Dim` torch demands a proof, which fails where a map is one
    pixel wide at the smallest size, and where a network pads its picture.
    """
    names = {name for sizes in signature.free_sizes.values() for name in sizes.values()}
    smallest, hint = signature.min_sizes, torch.export.Dim.DYNAMIC
    symbols = {name: hint(min=smallest.get(name, 2), max=MAX_SIZE) for name in names}
    free = [
        {axis: symbols[name] for axis, name in signature.free_sizes.get(key, {}).items()} or None
        for key in signature.inputs
    ]
    return torch.export.export(
        module,
        signature.example,
        dynamic_shapes=_nested(module, free),
        strict=False,
        prefer_deferred_runtime_asserts_over_guards=True,  # torch cannot prove that a cropped skip fits every size
    )


def write_model(model: Any, path: Path, overwrite: bool = False) -> None:
    """Writes an `onnx.ModelProto` with metadata, whole or not at all; InputError for a file that would not open."""
    refuse_existing(path, overwrite)
    data = model.SerializeToString()
    check_onnx(data, path)
    write_atomic(path, data)


def require_onnxscript() -> None:
    """Raises InputError, with the command that installs it, where torch's exporter lacks onnxscript."""
    if importlib.util.find_spec("onnxscript") is None:
        raise InputError("ONNX files need onnxscript: pip install '.[export]' in SteadySeg's clone")


def _nested(module: nn.Module, free: list[dict[int, Any] | None]) -> tuple[Any, ...]:
    """Arranges the sizes like the module's parameters: the sizes of a * parameter form one tuple."""
    parameters = inspect.signature(module.forward).parameters.values()
    plain = sum(parameter.kind is not parameter.VAR_POSITIONAL for parameter in parameters)
    return (*free[:plain], tuple(free[plain:])) if free[plain:] and plain < len(parameters) else tuple(free)
