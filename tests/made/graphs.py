"""street-tiny as graph files: their size, the flags of each mode, and exports that trace nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from made.shared import made_once

HEIGHT, WIDTH = 96, 128
"""Where street-tiny still finds most of the street, in a quarter of the time of its own 180 x 240."""
FLAGS = {
    "vq-dnn": ["--stateful", "--motion", "off", "--with-proof"],
    "motion": ["--stateful", "--with-proof"],
    "vq-bnn": ["--stateful", "--mode", "vq-bnn", "--motion", "off"],
    "dnn": ["--stateful", "--mode", "dnn"],
    "logits": ["--mode", "dnn"],
}
Graphs = Callable[[str], Path]


def graph_file(name: str) -> Path:
    """The file that the command `export` makes of street-tiny with the flags of a name; exporting proves it.

    `wrapped` is the file that `wrap` makes of its bare network, at the temperature of `motion`.
    """
    from steadyseg.app.cli import main

    def make(path: Path) -> None:
        words = ["export", "street-tiny", *FLAGS.get(name, ()), "--size", str(HEIGHT)]
        if name == "wrapped":
            words = ["wrap", *as_a_stranger(graph_file("logits")), "--size", f"{HEIGHT}x{WIDTH}", "--classes", "camvid"]
        assert main([*words, "-o", str(path)]) == 0

    return made_once(f"{name}.onnx", make)


def as_a_stranger(path: Path) -> list[str]:
    """A copy of a file of logits without our record, and the flags that tell `wrap` what the record said."""
    from steadyseg.core.method import MethodOptions
    from steadyseg.seg.pretrained import read_segmenter

    model, meta = onnx.load(path), read_segmenter("street-tiny").meta
    del model.metadata_props[:]
    onnx.save(model, other := path.with_name("other.onnx"))
    flags = ["--temperature", str(MethodOptions().resolve(meta).temperature)]
    return [str(other), *flags, "--mean", *map(str, meta.mean), "--std", *map(str, meta.std)]


def skip_tracing(
    patch: pytest.MonkeyPatch, path: Path, change: Callable[[onnx.ModelProto], object] | None = None
) -> None:
    """From now on `export` takes its graph from a file made before: torch's tracing is most of an export's time."""

    def made_before(*arguments: object, **named: object) -> onnx.ModelProto:
        model = onnx.load(path)
        del model.metadata_props[:]
        if change:
            change(model)
        return model

    patch.setattr("steadyseg.export.write.traced.to_onnx", made_before)


def scale_weights(model: onnx.ModelProto) -> None:
    """The largest weight tensor by 1.1: what a wrong conversion looks like."""
    tensor = max(model.graph.initializer, key=lambda t: len(t.raw_data))
    values = onnx.numpy_helper.to_array(tensor) * np.float32(1.1)
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
