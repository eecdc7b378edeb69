"""The backends of the bench: the network alone and whole steps, by torch and by OpenVINO, from one checkpoint."""

import functools
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.method import ModeName, draws_dropout
from steadyseg.core.options import Every
from steadyseg.core.prediction import Prediction
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import autocast, choose_device
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.runtime.choose import torch_precision
from steadyseg.runtime.conversion import convert
from steadyseg.runtime.cpu_backend import CpuBackend
from steadyseg.runtime.every import carried
from steadyseg.runtime.kernels.postprocess import FusedPostprocess
from steadyseg.runtime.networks import FrameNetwork, frame_network
from steadyseg.runtime.options import ComputeOptions
from steadyseg.runtime.torch_backend import TorchBackend as ProductBackend
from steadyseg.seg.streaming import StreamingSegmenter
from steadyseg.studies.performance.baselines import Logits
from steadyseg.studies.performance.variants import Subject, Variant


class Backend(Protocol):
    """Interface of both backends to the rows."""

    name: str
    precision: str
    device: str

    def logits(self, variant: Variant) -> Logits:
        """The network alone; the call returns when the logits are there."""
        ...

    def segmenter(
        self, mode: ModeName, samples: int | None = None, motion: bool = False, every: Every = 1
    ) -> Segmenter:
        """The whole step, all maps; several samples are whole passes, without a shared prefix."""
        ...

    def state_bytes(self) -> int:
        """Bytes of the temporal state of a stream."""
        ...


class WholePasses(nn.Module):
    """Hides that a network can be cut, so that every dropout pass runs all of it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network, self.head_stride = network, getattr(network, "head_stride", 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


class TorchBackend:
    """torch on the CPU or a GPU."""

    def __init__(self, subject: Subject, size: tuple[int, int], device: torch.device, precision: str) -> None:
        self._subject, self._size, self._device = subject, size, device
        self.precision, self.device = precision, device.type
        self.name = f"torch {torch.__version__.split('+')[0]} {precision}"
        self._network = functools.cache(subject.network)

    def logits(self, variant: Variant) -> Logits:
        mode: ModeName = "vq-bnn" if variant == "drawing" else "dnn"
        module = self._placed(self._subject.module(self._network(variant), mode)).module
        network = module.predictor.get_submodule("network")

        def run(picture: np.ndarray) -> Tensor:
            with torch.inference_mode(), autocast(self.device, self.precision):
                logits = network(module.preprocess(torch.from_numpy(picture).to(self._device)))[0]
                if self.device == "cuda":
                    torch.cuda.synchronize()
            return logits

        return run

    def segmenter(
        self,
        mode: ModeName,
        samples: int | None = None,
        motion: bool = False,
        every: Every = 1,
        *,
        shares_prefix: bool = False,
    ) -> Segmenter:
        """As in `Backend`. With `shares_prefix` several passes share what comes before the first mask."""
        network = self._network("drawing" if draws_dropout(mode) else "quiet")
        if samples is not None and not shares_prefix:
            network = WholePasses(network)
        module = self._subject.module(network, mode, samples, motion, watched=not draws_dropout(mode))
        return Segmenter(carried(self._placed(module), every))

    def state_bytes(self) -> int:
        classes, stride = len(self._subject.meta.classes), self._subject.head_stride
        height, width = (-(-length // stride) for length in self._size)
        like = Prediction(torch.zeros(1, classes, height, width), torch.zeros(1, height, width))
        return sum(tensor.nbytes for tensor in TemporalSmoothing().start(like))

    def _placed(self, module: StreamingSegmenter) -> ProductBackend:
        return ProductBackend(module, self._subject.meta, self._device, precision=self.precision)


class HostBackend:
    """OpenVINO and the fused kernel on the CPU; each network is converted once."""

    device = "cpu"

    def __init__(self, subject: Subject, size: tuple[int, int], precision: str) -> None:
        self._subject, self._size, self.precision = subject, size, precision
        self._network = functools.cache(self._made)
        self._open = functools.cache(self._converted)
        self.name = self._open("quiet", False, *size).backend

    def logits(self, variant: Variant) -> Logits:
        network = self._open(variant, False, *self._size)
        return lambda picture: torch.from_numpy(network(picture))

    def segmenter(
        self, mode: ModeName, samples: int | None = None, motion: bool = False, every: Every = 1
    ) -> Segmenter:
        variant: Variant = "drawing" if draws_dropout(mode) else "quiet"
        watched, meta = not draws_dropout(mode), self._subject.meta
        module = self._subject.module(self._network(variant), mode, samples, motion, watched=watched)
        backend = CpuBackend(
            self.name,
            functools.partial(self._open, variant, watched),
            module.size,
            meta.classes,
            module.method,
            (meta.height, meta.width),
            head_stride=module.head_stride,
            reference=module.head.reference if module.head else None,
        )
        return Segmenter(carried(backend, every))

    def state_bytes(self) -> int:
        classes, stride = len(self._subject.meta.classes), self._subject.head_stride
        maps = FusedPostprocess(classes, stride=stride)
        maps([np.zeros((classes, *(-(-length // stride) for length in self._size)), np.float32)], self._size)
        return maps.state_bytes

    def _made(self, variant: Variant) -> nn.Module:
        return self._subject.network(variant, self._subject.meta.int8["ranges"] if self.precision == "int8" else None)

    def _converted(self, variant: Variant, watched: bool, height: int, width: int) -> FrameNetwork:
        mode: ModeName = "vq-bnn" if variant == "drawing" else "dnn"
        module = self._subject.module(self._network(variant), mode, watched=watched)
        return frame_network(convert(module, height, width, shared=False), self.precision)


def open_backends(
    subject: Subject, size: tuple[int, int], name: str, number: str, compute: ComputeOptions
) -> tuple[Backend, Callable[[], TorchBackend]]:
    """(the backend of that name, torch on the same kind of device); size is the network's (h, w).

    `number` is the format of the backend; torch beside OpenVINO follows `compute.precision` where it can (not int8).
    """
    if name == "torch":
        chosen = TorchBackend(subject, size, choose_device(compute.device), number)
        return chosen, lambda: chosen
    cpu = torch.device("cpu")
    other = torch_precision("auto" if compute.precision == "int8" else compute.precision, cpu)
    beside = functools.cache(lambda: TorchBackend(subject, size, cpu, other))
    return HostBackend(subject, size, number), beside
