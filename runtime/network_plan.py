"""A checkpoint's network on OpenVINO: its description, its place in the cache, and its conversion, which alone needs
torch."""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.record import reference_scores
from steadyseg.core.method import Method, draws_dropout, no_dropout
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.model import Model
from steadyseg.core.model.tensor_file import INT8_PREFIX, below
from steadyseg.runtime.converted import (
    Converted,
    file_key,
    is_kept,
    kept,
    require_shapes,
    tell_once,
    was_kept,
)
from steadyseg.runtime.networks import FrameNetwork, frame_network
from steadyseg.runtime.shipped_graphs import ShippedGraphs
from steadyseg.seg.pretrained import FOLDER

if TYPE_CHECKING:
    from steadyseg.seg.streaming import StreamingSegmenter

MAX_STRETCH = 2.0
"""Largest factor by which a picture is made wider or narrower for a network of another shape."""


@dataclass(frozen=True)
class NetworkPlan:
    """The parts of a method that the network depends on; the kernel computes the other parts."""

    precision: str
    """fp32, bf16 or int8."""
    draws: bool
    """The network takes dropout masks."""
    shared: bool
    """The network is cut before its first dropout layer, for several passes per frame."""
    watches: bool
    """The network also computes familiarity."""

    @classmethod
    def of(cls, meta: CheckpointMeta, method: Method, precision: str) -> Self:
        """The plan of a checkpoint's method."""
        draws, watches = draws_dropout(method.mode), reference_scores(meta, method, precision) is not None
        return cls(precision, draws, method.samples > 1, watches)

    def name(self, height: int, width: int) -> str:
        """The name of the network for frames of h x w. A bf16 network has fp32's name: only its compilation differs."""
        parts = {"draws": self.draws, "shared": self.shared, "scores": self.watches}
        words = ["int8" if self.precision == "int8" else "fp32", *(word for word, has in parts.items() if has)]
        return " ".join((*words, f"{height}x{width}"))


class StoredNetwork:
    """The network of a checkpoint for a method in a number format, at any size of frames.

    It comes from the cache, or is converted and kept there.

    Raises InputError for a record that makes no network, weights that do not fit, and a mode with dropout on a network
    without dropout. The weights of a checkpoint that was converted before are not checked again.
    """

    def __init__(self, model: Model, method: Method, precision: str) -> None:
        self.model, self.method = model, method
        self.plan = NetworkPlan.of(model.meta, method, precision)
        require_dropout(model.meta, method)
        # Nothing proves that graphs from elsewhere compute what the weights beside them do.
        is_included = model.is_file and model.path.resolve().parent == FOLDER.resolve()
        self._shipped = ShippedGraphs(model.path, model.sha256) if is_included else None
        if not (model.is_file and (self._shipped or was_kept(model.sha256))):
            self.module  # noqa: B018 (built, and so checked, before any frame comes)

    @cached_property
    def module(self) -> "StreamingSegmenter":
        """The streaming module, with rounded convolutions for int8."""
        from steadyseg.core.model.int8 import round_convolutions
        from steadyseg.seg.of_model import streaming_module

        network = self.model.network()
        if self.plan.precision == "int8":
            round_convolutions(network, self.model.meta.int8["ranges"], below(self.model.tensors, INT8_PREFIX))
        return streaming_module(self.model, self.method, network=network, precision=self.plan.precision)

    def nearest(self, height: int, width: int) -> tuple[int, int]:
        """The size (h, w) itself, or without torch the shipped size of that height whose width is nearest.

        A width that differs by more than `MAX_STRETCH` is not taken.
        """
        name = self.plan.name(height, width)
        if not self._shipped or name in self._shipped or find_spec("torch") or is_kept(self.model.sha256, name):
            return height, width
        kin = name.removesuffix(str(width))
        widths = [int(end) for one in self._shipped if (end := one.removeprefix(kin)).isdecimal() and end != one]
        best = min(widths, key=lambda one: abs(math.log(one / width)), default=width)
        stretch = best / width
        if not 1 / MAX_STRETCH <= stretch <= MAX_STRETCH:
            return height, width
        tell_once(
            f"note: {self.model.name} without torch has no network for {width}x{height} pixels: pictures are made "
            f"{abs(stretch - 1):.0%} {'wider' if stretch > 1 else 'narrower'} for {best}x{height}"
        )
        return height, best

    def open(self, height: int, width: int) -> FrameNetwork:
        """Opens the network for frames of h x w."""
        name = self.plan.name(height, width)
        check = partial(require_shapes, height=height, width=width, classes=len(self.model.meta.classes))
        if self._shipped and name in self._shipped and (found := self._shipped.read(name, self.model.arrays, check)):
            return frame_network(found, self.plan.precision)
        key = file_key(self.model.sha256, name) if self.model.is_file else None

        def convert() -> Converted:
            try:
                from steadyseg.runtime.conversion import convert
            except ModuleNotFoundError as error:
                lacking = f"{self.model.name}: a network for {width}x{height} pixels must be converted first"
                raise InputError(
                    f"{lacking}, which needs {error.name}: pip install '.[train]' in SteadySeg's clone"
                ) from error
            return convert(self.module, height, width, self.plan.shared)

        return frame_network(kept(key, convert, check), self.plan.precision)


def head_stride(meta: CheckpointMeta) -> int:
    """Returns the stride of the network's output, by its options."""
    return int(meta.options.get("head_stride", 1))


def require_dropout(meta: CheckpointMeta, method: Method) -> None:
    """Raises InputError for a mode that draws dropout masks on a network without dropout."""
    if draws_dropout(method.mode) and not any(
        value for name, value in meta.options.items() if name.endswith("dropout")
    ):
        raise no_dropout(method.mode)
