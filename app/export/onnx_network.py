"""A foreign ONNX graph as a torch module, run by ONNX Runtime: the reference for the proof of the written graph."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.core.preprocess import Normalize
from steadyseg.core.stages import Stage, itself
from steadyseg.core.tracing import Signature, is_exporting
from steadyseg.export.file.foreign import ForeignGraph
from steadyseg.export.file.sessions import cpu_session
from steadyseg.export.write.splice import OUTPUT, foreign_network
from steadyseg.export.write.traced import to_onnx
from steadyseg.seg.any_network import AnyNetwork


class OnnxNetwork(AnyNetwork):
    """(1, 3, h, w) normalised -> (1, K, ceil(h / s), ceil(w / s)) logits, of the original file on the CPU.

    Torch cannot trace it. During an export other operators stand in for the network; `graph` replaces them afterwards.
    Raises InputError as `AnyNetwork` does.
    """

    def __init__(
        self, foreign: ForeignGraph, normalize: Normalize, classes: int | None, features: Sequence[str] = ()
    ) -> None:
        """`classes`: number of classes; if None, the channels of the output. `features`: outputs (1, C, h', w') that
        are stages of the network."""
        session, stages = cpu_session(foreign.data), nn.ModuleDict({name: nn.Identity() for name in features})

        def run(image: Tensor) -> dict[str, Tensor]:
            picture = image.permute(0, 2, 3, 1) if foreign.channels_last else image
            outputs = session.run(list(foreign.outputs), {foreign.input: np.ascontiguousarray(picture.numpy())})
            found = dict(zip(foreign.outputs, map(torch.from_numpy, outputs), strict=True))
            for name in features:
                stages[name](found.pop(name))
            return found

        super().__init__(run, foreign.size, normalize, classes, str(foreign.path))
        threshold = foreign.thresholds.get(self.taken[0])
        if threshold is not None and (self.form.channels, threshold) != (1, 0.5 if self.form.is_probability else 0.0):
            raise InputError(
                f"{foreign.path}: its labels are {self.form}, cut at {threshold:g}; expected one channel, cut at 0.5 "
                "of probabilities or 0 of logits. Export the network without its threshold"
            )
        self.fixed_size = foreign.size
        stride = self.head_stride
        self.stand_in = nn.Parameter(torch.zeros(self.form.classes, 3, stride, stride), requires_grad=False)
        names = tuple(f"{OUTPUT}{number}" for number in range(len(self.taken)))
        to_logits = to_onnx(self.to_logits, Signature(names, ("logits",), self.examples))
        self.graph = foreign_network(foreign, dict(zip(self.taken, names, strict=True)), to_logits, features)
        """`onnx.ModelProto` from `image` to `logits` and the features."""
        self.stages = stages
        self.stage_sizes = {one.name: one.shape for one in session.get_outputs() if one.name in features}

    def named_stages(self) -> dict[str, Stage]:
        """The features, for statistics of familiarity."""
        return {name: Stage(module, itself) for name, module in self.stages.items()}

    def forward(self, image: Tensor) -> Tensor:
        if not is_exporting():
            return super().forward(image)
        assert self.fixed_size
        height, width = self.fixed_size
        stride = self.head_stride
        logits = F.conv2d(F.pad(image, (0, -width % stride, 0, -height % stride)), self.stand_in, stride=stride)
        for name, size in self.stage_sizes.items():
            logits = logits + self.stages[name](F.interpolate(image[:, :1], size[2:]).expand(size)).mean()
        return logits
