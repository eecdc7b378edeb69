"""The torch executor, on CPU or CUDA, and how a checkpoint's network is opened."""

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import InputError
from core.frame import Maps
from core.method import MethodOptions
from core.model.checkpoint import CheckpointMeta, load_checkpoint, load_weights
from core.model.int8 import Ranges, round_convolutions
from core.model.weight_limit import limited_weights
from core.motion import Motion
from core.novelty.opening import open_head
from core.prediction import Prediction
from core.predictors import Ensemble
from core.segmenter import StagedSegmenter
from core.temporal import State
from seg.networks.build import build_network
from seg.pretrained import find_checkpoint
from seg.streaming import StreamingSegmenter


class TorchSegmenter(StagedSegmenter):
    """A `StreamingSegmenter` and its state."""

    def __init__(
        self,
        module: StreamingSegmenter,
        meta: CheckpointMeta,
        device: torch.device,
        *,
        keep_probs: bool = False,
        precision: str = "fp32",
    ) -> None:
        own_world = module.head.own_world if module.head else None
        super().__init__(
            meta.classes, module.method, (meta.height, meta.width), keep_probs=keep_probs, own_world=own_world
        )
        self.module = module.to(device).to(memory_format=torch.channels_last).eval()
        self.meta, self.device, self.precision = meta, device.type, precision
        self.executor = f"torch {torch.__version__.split('+')[0]} {precision}"
        self._state: State | None = None

    @torch.inference_mode()
    def preprocess(self, image: np.ndarray) -> Tensor:
        pixels = np.require(image, requirements=["C", "W"])  # torch takes no reversed or read-only view
        return self.module.preprocess(torch.from_numpy(pixels).to(self.device)[None])

    @torch.inference_mode()
    def predict(self, picture: Tensor) -> Prediction:
        with self.clock.measure("network"), self._autocast():
            prediction: Prediction = self.module.predictor(picture)
            if self.device == "cuda":
                torch.cuda.synchronize()
        return prediction

    def state_size(self, height: int, width: int) -> tuple[int, int]:
        return self.module.state_size(height, width)

    @torch.inference_mode()
    def finish(self, passes: Prediction, size: tuple[int, int], gap: int, motion: Motion | None) -> Maps:
        state = self._state if gap else None
        mean, self._state = self.module.smooth(passes, state, max(gap, 1), motion)
        outputs = self.module.maps(mean, *size)
        label, confidence, entropy, disagreement = (tensor[0].cpu().numpy() for tensor in outputs[:4])
        probs = outputs.prediction.probs[0].float().cpu().numpy() if self.keep_probs else None
        maps = Maps(label, confidence, entropy, disagreement, probs)
        if passes.sight is None:
            return maps
        return self.add_novelty(maps, float(passes.sight.score), passes.sight.regions[0].float().cpu().numpy(), gap)

    def at_temperature(self, temperature: float) -> "TorchSegmenter":
        """The same network in a stream of its own at another temperature, and without statistics of its frames."""
        module = self.module
        network, method = module.predictor.get_submodule("network"), replace(module.method, temperature=temperature)
        again = StreamingSegmenter(network, self.meta.mean, self.meta.std, module.height, method)
        device = torch.device(self.device)
        return TorchSegmenter(again, self.meta, device, keep_probs=self.keep_probs, precision=self.precision)

    def rounded(self, ranges: Ranges) -> "TorchSegmenter":
        """The same with its convolutions in int8, in a stream of its own."""
        module = copy.deepcopy(self.module)
        round_convolutions(module.predictor.get_submodule("network"), ranges)
        device = torch.device(self.device)
        return TorchSegmenter(module, self.meta, device, keep_probs=self.keep_probs, precision=self.precision)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        """Of the network alone: means of probabilities need more than 8 bits."""
        if self.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast(self.device, torch.bfloat16)


def open_torch_segmenter(
    model: str | Path,
    options: MethodOptions = MethodOptions(),  # noqa: B008 (frozen)
    *,
    members: Sequence[str | Path] = (),
    size: int | None = None,
    device: torch.device | None = None,
    keep_probs: bool = False,
    precision: str = "fp32",
) -> TorchSegmenter:
    """A segmenter from a pretrained checkpoint's name or a file.

    `members` are further checkpoints of the same classes and size; with them the model is a deep ensemble, whose mode
    dnn averages all members and whose mode vq-dnn draws one of them for every frame; it has no fitted temperature.
    `size` is the height in pixels that the network works at, the checkpoint's without it.
    """
    network, meta = open_network(model)
    method = options.resolve(replace(meta, calibration={}, novelty={}) if members else meta)
    head = None if members else open_head(find_checkpoint(model), meta, method)
    if members:
        network = open_ensemble(network, meta, members)
    module = StreamingSegmenter(network, meta.mean, meta.std, size or meta.height, method, head)
    return TorchSegmenter(module, meta, device or torch.device("cpu"), keep_probs=keep_probs, precision=precision)


def open_network(model: str | Path) -> tuple[nn.Module, CheckpointMeta]:
    """The network of a pretrained checkpoint's name or a file, with its record."""
    path = find_checkpoint(model)
    tensors, meta = load_checkpoint(path)
    options = dict(meta.options)
    if "encoder_weights" in options:  # what training began with; the weights are in the file now
        options["encoder_weights"] = None
    with limited_weights(tensors, path):
        network = build_network(meta.architecture, options, len(meta.classes))
    load_weights(network, tensors, path)
    return network, meta


def open_ensemble(first: nn.Module, meta: CheckpointMeta, members: Sequence[str | Path]) -> Ensemble:
    """All members see one preprocessed frame, so they must agree about it."""
    networks = [first]
    for name in members:
        network, other = open_network(name)
        for what in ("classes", "mean", "std"):
            if getattr(other, what) != getattr(meta, what):
                raise InputError(f"{name}: other {what} than the first member; an ensemble needs one training set")
        networks.append(network)
    return Ensemble(networks)
