"""Torch modules -> ONNX graphs, by torch.export; the files are written whole or not at all."""

import inspect
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import InputError, refuse_existing
from core.system.files import write_atomic
from core.tracing import tracing
from export.file.onnx_file import check_onnx

OPSET = 20
"""Resize with antialias needs 18, and 20 is what ONNX Runtime 1.17 and OpenVINO 2024 read already."""


@tracing()
def to_onnx(
    module: nn.Module,
    example: Sequence[Tensor],
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]],
    inner: Sequence[str] = (),
    least: Mapping[str, int] | None = None,
) -> Any:
    """The `onnx.ModelProto` of module(*example), all tensors inside.

    `dynamic`: by input name, the sizes that stay free and what they are called. `inner` names outputs that only mark a
    place inside the graph: they keep their name and stop being outputs. `least`: the smallest values of free sizes,
    where not 2.
    """
    onnx = import_onnx()
    names = {name for sizes in dynamic.values() for name in sizes.values()}
    sizes = {name: torch.export.Dim(name, min=(least or {}).get(name, 2), max=8192) for name in names}
    free = [{d: sizes[n] for d, n in dynamic.get(name, {}).items()} or None for name in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        level = logging.getLogger("torch.onnx").level
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        try:
            program = torch.export.export(
                module,
                tuple(example),
                dynamic_shapes=_nested(module, free),
                strict=False,
                prefer_deferred_runtime_asserts_over_guards=True,  # it cannot prove that a cropped skip fits any size
            )
            exported = torch.onnx.export(
                program,
                dynamo=True,
                input_names=list(inputs),
                output_names=list(outputs),
                opset_version=OPSET,
                verbose=False,
            )
        finally:
            logging.getLogger("torch.onnx").setLevel(level)
    assert exported is not None
    model = exported.model_proto
    marked = [value for value in model.graph.output if value.name in inner]
    for value in marked:
        model.graph.output.remove(value)
        model.graph.value_info.append(value)
    onnx.checker.check_model(model)
    return model


def write_model(model: Any, path: Path, overwrite: bool = False) -> None:
    """One file, written beside and renamed, so that a reader never meets half of it. InputError for what would not
    open."""
    refuse_existing(path, overwrite)
    data = model.SerializeToString()
    check_onnx(data, path)
    write_atomic(path, data)


def import_onnx() -> Any:
    """onnx, or InputError with the command that brings it."""
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError(f"ONNX files need {error.name}: pip install 'steadyseg[export]'") from error
    return onnx


def _nested(module: nn.Module, free: list[dict[int, Any] | None]) -> tuple[Any, ...]:
    """The sizes in the shape of the module's parameters: those behind a * parameter are one tuple."""
    parameters = inspect.signature(module.forward).parameters.values()
    plain = sum(parameter.kind is not parameter.VAR_POSITIONAL for parameter in parameters)
    return (*free[:plain], tuple(free[plain:])) if free[plain:] and plain < len(parameters) else tuple(free)
