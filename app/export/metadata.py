"""The metadata of a graph file, from the exported model."""

import platform
from typing import Any

import torch

from steadyseg.core.method import Method, method_of_fit, settings
from steadyseg.core.model.model import Model
from steadyseg.export.file.metadata import GraphMeta, KindName


def graph_meta(model: Model, kind: KindName, method: Method, size: tuple[int, int], **more: Any) -> GraphMeta:
    """Returns the metadata of a graph for inputs of size (h, w); `more`: the other fields of `GraphMeta`."""
    import onnx

    meta = model.meta
    if kind == "stream" and (fit := meta.fit_in_use(method)) and "conformal" in fit:
        of_method = bool(meta.thresholds) and settings(method_of_fit(meta.thresholds)) == settings(method)
        more |= {"fit": fit, "thresholds": meta.thresholds if of_method else {}}
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
