"""The checkpoint that is exported, read once by a command, and the metadata that its graphs take from it."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from app.find_model import find_model
from classification.networks.build import build_classifier
from classification.opening import ARCHITECTURE, check_record
from core.method import Method
from core.model.checkpoint import CheckpointMeta, load_checkpoint, load_weights
from core.model.weight_limit import limited_weights
from export.file.metadata import GraphMeta, KindName
from seg.networks.build import build_network


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint's file."""

    path: Path
    sha256: str
    """Digest of the file."""
    meta: CheckpointMeta
    tensors: Mapping[str, Tensor]

    @property
    def is_classifier(self) -> bool:
        return self.meta.architecture == ARCHITECTURE

    def network(self) -> nn.Module:
        """Builds a new network with these weights: callers switch its dropout."""
        options, classes = dict(self.meta.options), len(self.meta.classes)
        if "encoder_weights" in options:  # where training began; the weights are in the file now
            options["encoder_weights"] = None
        with limited_weights(self.tensors, self.path):
            if self.is_classifier:
                network = build_classifier(options, classes)
            else:
                network = build_network(self.meta.architecture, options, classes)
        load_weights(network, self.tensors, self.path)
        return network.eval()


def read_checkpoint(model: str) -> Checkpoint:
    """Reads the checkpoint of a pretrained name or a path; InputError for anything else."""
    path = find_model(model)
    tensors, meta = load_checkpoint(path)
    if meta.architecture == ARCHITECTURE:
        check_record(meta, path)
    return Checkpoint(path, hashlib.sha256(path.read_bytes()).hexdigest(), meta, tensors)


def graph_meta(checkpoint: Checkpoint, kind: KindName, method: Method, size: tuple[int, int], **more: Any) -> GraphMeta:
    """Returns the metadata of a graph for inputs of size (h, w); `more`: the other fields of `GraphMeta`."""
    import onnx

    meta = checkpoint.meta
    return GraphMeta(
        kind=kind,
        classes=meta.classes,
        height=size[0],
        width=size[1],
        mean=meta.mean,
        std=meta.std,
        method=method,
        source=checkpoint.path.stem,
        source_sha256=checkpoint.sha256,
        versions={"torch": torch.__version__, "onnx": onnx.__version__, "python": platform.python_version()},
        licence=meta.licence,
        **more,
    )
