"""The torch executor: holds a `StreamingSegmenter` and its state, resets where a stream breaks."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from core.checkpoint import CheckpointMeta, load_checkpoint, load_weights
from core.continuity import Continuity
from core.errors import InputError
from core.frame import Frame, Maps
from core.motion import Motion, MotionEstimator
from core.predictors import Ensemble
from core.temporal import State, TemporalSmoothing
from core.timing import StageClock
from seg.networks.build import build_network
from seg.options import ModeName
from seg.pretrained import find_checkpoint
from seg.streaming import Outputs, StreamingSegmenter


class TorchSegmenter:
    """A `Segmenter` (core/segmenter.py) on CPU or CUDA."""

    def __init__(
        self,
        module: StreamingSegmenter,
        meta: CheckpointMeta,
        device: torch.device,
        *,
        keep_probs: bool = False,
        precision: str = "fp32",
    ) -> None:
        self.module = module.to(device).to(memory_format=torch.channels_last).eval()
        self.meta, self.classes, self.method = meta, meta.classes, module.method(meta)
        self.device, self.keep_probs, self.precision = device.type, keep_probs, precision
        self.executor = f"torch {torch.__version__.split('+')[0]} {precision}"
        self.clock = StageClock()
        self._continuity = Continuity()
        self._estimate_motion = MotionEstimator()
        self.resets = self._continuity.resets
        self.reset()

    def reset(self) -> None:
        """Forgets all earlier frames."""
        self._state: State | None = None
        self._continuity.forget()
        self._estimate_motion.forget()

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; see `Maps` for what comes out."""
        gap = self._continuity.follow(frame)
        if not gap:
            self._state = None
        with torch.inference_mode():
            with self.clock.measure("preprocess"):
                pixels = np.require(frame.image, requirements=["C", "W"])  # torch takes no reversed or read-only view
                image = torch.from_numpy(pixels).to(self.device)[None]
                batch = self.module.preprocess(image)
            with self.clock.measure("network"), self._autocast():  # means of probabilities need more than 8 bits
                prediction = self.module.predict(batch)
                self._synchronize()
            with self.clock.measure("smoothing"):
                prediction, self._state = self.module.smooth(
                    prediction, self._state, max(gap, 1), self._motion(frame, gap)
                )
                outputs = self.module.maps(prediction, *frame.image.shape[:2])
                maps = self._to_host(outputs)
        return maps

    def _motion(self, frame: Frame, gap: int) -> Motion | None:
        if not self.module.follows_motion:
            return None
        return self._estimate_motion(frame.image, self.module.state_size(*frame.image.shape[:2]), gap)

    def _to_host(self, outputs: Outputs) -> Maps:
        label, confidence, entropy, disagreement = (tensor[0].cpu().numpy() for tensor in outputs[:4])
        probs = outputs.prediction.probs[0].float().cpu().numpy() if self.keep_probs else None
        return Maps(label, confidence, entropy, disagreement, probs)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast(self.device, torch.bfloat16)

    def _synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def open_segmenter(
    model: str | Path,
    *,
    members: Sequence[str | Path] = (),
    mode: ModeName = "vq-dnn",
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    motion: bool = False,
    size: int | None = None,
    calibrated: bool | None = None,
    temperature: float | None = None,
    device: torch.device | None = None,
    keep_probs: bool = False,
    precision: str = "fp32",
) -> TorchSegmenter:
    """A segmenter from a pretrained checkpoint's name or a file. `calibrated` None: where the checkpoint has a temperature.

    `members` are further checkpoints of the same classes and size; with them the model is a deep ensemble, whose mode dnn
    averages all members and whose mode vq-dnn draws one of them for every frame. `temperature` overrides the checkpoint's.
    """
    network, meta = open_network(model)
    if members:
        network = open_ensemble(network, meta, members)
    fitted = None if members else meta.temperature(mode)
    if temperature is not None and not 0 < temperature < math.inf:
        raise InputError(f"the temperature must be a positive number, got {temperature}")
    if calibrated and fitted is None and temperature is None:
        raise InputError(
            f"{model}: has no temperature for mode {mode}; make one with `steadyseg calibrate` or omit --calibrated on"
        )
    chosen = temperature if temperature is not None else None if calibrated is False else fitted
    module = StreamingSegmenter(
        network,
        meta.mean,
        meta.std,
        size or meta.height,
        mode=mode,
        samples=samples,
        smoothing=TemporalSmoothing(default_tau(motion) if tau is None else tau, window, motion),
        temperature=1.0 if chosen is None else chosen,
    )
    return TorchSegmenter(module, meta, device or torch.device("cpu"), keep_probs=keep_probs, precision=precision)


def default_tau(motion: bool) -> float:
    """Published: 1.25 frames. A mean that follows motion may remember longer (docs/results.md)."""
    return 8.0 if motion else 1.25


def open_network(model: str | Path) -> tuple[nn.Module, CheckpointMeta]:
    """The network of a pretrained checkpoint's name or a file, with its record."""
    path = find_checkpoint(model)
    tensors, meta = load_checkpoint(path)
    options = dict(meta.options)
    if "encoder_weights" in options:  # what training began with; the weights are in the file now
        options["encoder_weights"] = None
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
