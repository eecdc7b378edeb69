"""The torch backend, on CPU or CUDA."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.frame import FrameScores, Maps
from steadyseg.core.method import Method
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.int8 import NO_CORRECTIONS, Corrections, Ranges, round_convolutions
from steadyseg.core.model.model import Model
from steadyseg.core.motion import Motion
from steadyseg.core.prediction import Prediction
from steadyseg.core.stage_clock import StageClock
from steadyseg.core.system.machine import autocast
from steadyseg.core.temporal import State
from steadyseg.seg.of_model import streaming_module
from steadyseg.seg.streaming import StreamingSegmenter


class TorchBackend:
    """A `StreamingSegmenter` and its state; see `core.segmenter.Backend`."""

    def __init__(
        self,
        module: StreamingSegmenter,
        meta: CheckpointMeta,
        device: torch.device,
        *,
        keep_probs: bool = False,
        precision: str = "fp32",
        why: str = "",
    ) -> None:
        self.module = module.to(device).to(memory_format=torch.channels_last).eval()
        self.meta, self.classes, self.method, self.size = meta, meta.classes, module.method, (meta.height, meta.width)
        self.head_stride = module.head_stride
        self.device, self.precision, self.why, self.keep_probs = device.type, precision, why, keep_probs
        self.name = f"torch {torch.__version__.split('+')[0]} {precision}"
        self.reference = module.head.reference if module.head else None
        self.clock = StageClock()
        self._state: State | None = None

    @property
    def network(self) -> nn.Module:
        return self.module.predictor.get_submodule("network")

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        return self.module.state_size(height, width)

    @torch.inference_mode()
    def compute(self, image: np.ndarray, gap: int, motion: Motion | None) -> tuple[Maps, FrameScores | None]:
        with self.clock.measure("preprocess"):
            pixels = np.require(image, requirements=["C", "W"])  # torch takes no reversed or read-only view
            batch = self.module.preprocess(torch.from_numpy(pixels).to(self.device)[None])
        prediction = self._predict(batch)
        with self.clock.measure("smoothing"):
            mean, self._state = self.module.smooth(prediction, self._state if gap else None, max(gap, 1), motion)
            outputs = self.module.maps(mean, *image.shape[:2])
            label, confidence, entropy, disagreement = (tensor[0].cpu().numpy() for tensor in outputs[:4])
            probs = outputs.prediction.probs[0].float().cpu().numpy() if self.keep_probs else None
            maps, scores = Maps(label, confidence, entropy, disagreement, probs), prediction.scores
            if scores is None:
                return maps, None
            energy = scores.energy[0].float().cpu().numpy()
            return maps, FrameScores(float(scores.score), energy)

    def at_temperature(self, temperature: float, network: nn.Module | None = None) -> "TorchBackend":
        """Returns a backend of this or an equal network at another temperature, for another stream and without
        scores."""
        module = self.module
        network, method = network or self.network, replace(module.method, temperature=temperature)
        return self._like(StreamingSegmenter(network, self.meta.mean, self.meta.std, module.height, method))

    def rounded(self, ranges: Ranges, corrections: Corrections = NO_CORRECTIONS) -> "TorchBackend":
        """Returns a backend of a copy whose convolutions compute in int8, for another stream."""
        module = copy.deepcopy(self.module)
        round_convolutions(module.predictor.get_submodule("network"), ranges, corrections)
        return self._like(module)

    def _like(self, module: StreamingSegmenter) -> "TorchBackend":
        device = torch.device(self.device)
        return TorchBackend(module, self.meta, device, keep_probs=self.keep_probs, precision=self.precision)

    def _predict(self, batch: Tensor) -> Prediction:
        self.module.switch_dropout()
        with self.clock.measure("network"), autocast(self.device, self.precision):  # all after it is float32
            prediction: Prediction = self.module.predictor(batch)
            if self.device == "cuda":
                torch.cuda.synchronize()
        return prediction


def torch_backend(
    model: Model,
    method: Method,
    *,
    members: Sequence[Model] = (),
    size: int | None = None,
    device: torch.device | None = None,
    keep_probs: bool = False,
    precision: str = "fp32",
    why: str = "",
) -> TorchBackend:
    """Returns a torch backend of a model with a method.

    Args:
        members: Further models of the same classes and size, for a deep ensemble. Mode dnn averages all members, mode
            vq-dnn draws one member for every frame.
        size: Height in pixels at which the network works, by default the checkpoint's.
    """
    module = streaming_module(model, method, members=members, size=size)
    return TorchBackend(
        module, model.meta, device or torch.device("cpu"), keep_probs=keep_probs, precision=precision, why=why
    )
