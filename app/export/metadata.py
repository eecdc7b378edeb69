"""The metadata of a graph file, from the exported model."""

import platform
from typing import Any

import torch

from steadyseg.core.method import Method
from steadyseg.core.model.model import Model
from steadyseg.export.file.metadata import GraphMeta, KindName


def graph_meta(model: Model, kind: KindName, method: Method, size: tuple[int, int], **more: Any) -> GraphMeta:
    """Returns the metadata of a graph for inputs of size (h, w); `more`: the other fields of `GraphMeta`."""
    import onnx

    meta = model.meta
    return GraphMeta(
        kind=kind,
        classes=meta.classes,
        height=size[0],
        width=size[1],
        mean=meta.mean,
        std=meta.std,
        method=method,
        source=model.path.stem,
        source_sha256=model.sha256,
        versions={"torch": torch.__version__, "onnx": onnx.__version__, "python": platform.python_version()},
        licence=meta.licence,
        **more,
    )
