"""A network whose logits are computed once and read again, for fits that pass over the same pictures twice."""

from io import BytesIO
from shutil import disk_usage
from tempfile import TemporaryFile, gettempdir
from typing import Any
from weakref import finalize

import torch
from torch import Tensor, nn

from steadyseg.core.predictors import SplitNetwork, first_tensor

MAX_KEPT_BYTES = 2**32
"""Largest file of logits: 565 frames of 480x360 with 11 classes. It takes at most half of the free disk."""


class SplitLogits(nn.Module):
    """A network, split like the given one, whose output is the tensor of logits."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> Any:
        return self.network.prefix(x) if isinstance(self.network, SplitNetwork) else x

    def suffix(self, shared: Any) -> Tensor:
        return first_tensor(
            self.network.suffix(shared) if isinstance(self.network, SplitNetwork) else self.network(shared)
        )


class KeptLogits(SplitLogits):
    """A network that computes the logits of a list of pictures once. After `rewind` it reads them from a temporary
    file. Pictures beyond `MAX_KEPT_BYTES` are computed again. The file has no name: nothing remains of a process that
    is killed."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network)
        self.head_stride, self.fixed_size = getattr(network, "head_stride", 1), getattr(network, "fixed_size", None)
        self._file = TemporaryFile()  # noqa: SIM115
        finalize(self, self._file.close)
        self._room = min(MAX_KEPT_BYTES, disk_usage(gettempdir()).free // 2)
        self._ends, self._place = [0], 0

    def rewind(self) -> None:
        self._place = 0

    def prefix(self, x: Tensor) -> Any:
        self._is_kept, self._has_room = self._place + 1 < len(self._ends), self._ends[-1] < self._room
        return x if self._is_kept else super().prefix(x)

    def suffix(self, shared: Any) -> Tensor:
        if self._is_kept:
            start, end = self._ends[self._place : self._place + 2]
            self._file.seek(start)
            logits: Tensor = torch.load(BytesIO(self._file.read(end - start)), weights_only=True)
        else:
            logits = super().suffix(shared)
            if self._has_room:
                torch.save(logits.clone(), data := BytesIO())  # a view would be saved with its whole storage
                self._ends.append(self._ends[-1] + self._file.write(data.getvalue()))
        self._place += self._is_kept or self._has_room
        return logits
