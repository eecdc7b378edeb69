"""Conversion of a graph's network to fewer bits: float16 throughout, or int8 convolutions between float32.

Only the nodes from `image` to `logits` change, and both tensors stay float32 (export/file/subgraph.py). The graph must
therefore run the network once a frame: several dropout passes have no single `logits`.
"""

import contextlib
import logging
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from steadyseg.export.file.subgraph import IMAGE, network_alone, with_network
from steadyseg.export.run.sessions import import_onnxruntime

CONVOLUTIONS = ("Conv", "ConvTranspose")
"""Operators that become int8; they are over 95 % of the work of the networks here."""


def to_fp16(model: Any) -> Any:
    """Returns a copy of an `onnx.ModelProto` with a float16 network. Values beyond 65504 overflow."""
    import_onnxruntime()
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    # Random draws stay float32, so that the rate of a dropout layer is not rounded to eleven bits.
    blocked = [*DEFAULT_OP_BLOCK_LIST, "Bernoulli", "RandomUniform", "RandomNormal", "RandomNormalLike"]
    with _quiet():
        small = convert_float_to_float16(network_alone(model), keep_io_types=True, op_block_list=blocked)
    return with_network(model, small)


def to_int8(model: Any, images: Iterable[np.ndarray], whole: bool = False) -> Any:
    """Returns a copy with int8 convolutions, their scales fitted to normalised `images` (1, 3, h, w) float32.

    Weights have a scale per channel. Activations have a scale and a zero point per tensor, from the smallest and
    largest values of each image, averaged over the images. Then 98.7 % of the labels equal float32's
    (camvid-unet-s, 24 CamVid stills), with the extremes of all images 97.5 %, with symmetric scales 97.3 %. Leaving out
    the first, the last or the transposed convolutions gains nothing and costs time. Outputs stay float32: OpenVINO
    joins ReLU, BatchNorm and rounding to the convolution before (0.33 of fp32's time). ONNX Runtime on a CPU does not
    join them (1.3 times fp32's).

    `whole`: for ONNX Runtime in WebAssembly, which is quick only where tensors stay int8 from one operator to the next
    (two threads, camvid-realtime: 97 ms a frame; 150 ms without `whole` and in fp32). Weights then have 7 bits, so that
    products do not saturate where the same file runs on a processor with AVX2 alone.
    """
    import_onnxruntime()
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    inputs = ({IMAGE: image} for image in images)

    class Reader(CalibrationDataReader):
        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(inputs, None)

    floats_out = [] if whole else list(CONVOLUTIONS)
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        quantize_static(
            network_alone(model),
            path,
            Reader(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=None if whole else list(CONVOLUTIONS),
            per_channel=True,
            reduce_range=whole,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            extra_options={"CalibMovingAverage": True, "OpTypesToExcludeOutputQuantization": floats_out},
        )
        return with_network(model, onnx.load(path))


def rounding(model: Any) -> Any:
    """Returns a copy of a float16 graph that rounds every value between two operators, for its proof on a CPU.

    ONNX Runtime has few float16 operators for CPUs. It computes in float32 and drops the casts between operators, even
    without graph optimisations. So a value of 3e5 passes on a CPU and becomes infinite on a GPU. Here every float16
    tensor of the network passes two Concats of one tensor, which really move 16 bits. A single Concat between casts
    would run in float32 as well.
    """
    network = onnx.shape_inference.infer_shapes(network_alone(model))
    half = {
        value.name for value in network.graph.value_info if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    }
    nodes = []
    for node in network.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in half:
                node.output[place] = f"{name}_exact"
                for source, target in ((f"{name}_exact", f"{name}_moved"), (f"{name}_moved", name)):
                    nodes.append(onnx.helper.make_node("Concat", [source], [target], name=f"{target}_rounded", axis=0))
    rounded = onnx.ModelProto()
    rounded.CopyFrom(network)
    for field in ("node", "value_info"):
        rounded.graph.ClearField(field)
    rounded.graph.node.extend(nodes)
    return with_network(model, rounded)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences the converters, which log progress and advice to the root logger."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
