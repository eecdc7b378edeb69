"""The network of a streaming module as OpenVINO models, by torch.export."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.tracing import tracing
from steadyseg.export.file.sessions import openvino_core
from steadyseg.runtime.converted import Converted
from steadyseg.seg.of_model import DrawnPart, FrameToLogits, SharedPart
from steadyseg.seg.streaming import StreamingSegmenter


def convert(module: StreamingSegmenter, height: int, width: int, shared: bool) -> Converted:
    """Converts the network for frames of h x w; its dropout masks are inputs.

    `shared`: cut before its first dropout layer, for several forward passes per frame.
    """
    network = FrameToLogits(module)
    shapes, rates = network.mask_shapes(height, width), [dropout.rate for dropout in network.dropouts]
    frame, *blank = (torch.zeros(shape, dtype=torch.uint8) for shape in ((1, height, width, 3), *shapes))
    if not shared:
        return Converted([openvino_model(network, [frame, *blank])], rates, shapes)
    first = SharedPart(network)
    rest = DrawnPart(first, height, width)
    models = [openvino_model(first, [frame]), openvino_model(rest, [*rest.example, *blank])]
    return Converted(models, rates, shapes)


@tracing()
def openvino_model(module: nn.Module, example: Sequence[Tensor]) -> Any:
    """A torch module as an OpenVINO model, in some seconds."""
    import warnings

    openvino_core()
    import openvino

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, tuple(example), strict=False)
        return openvino.convert_model(program)
