"""The torch executor: holds a `StreamingSegmenter` and its state, resets where a stream breaks."""

import contextlib
from pathlib import Path

import numpy as np
import torch

from core.checkpoint import CheckpointMeta, load_checkpoint, load_weights
from core.continuity import Continuity
from core.errors import InputError
from core.frame import Frame, Maps
from core.temporal import State, TemporalSmoothing
from core.timing import StageClock
from seg.bundled import find_checkpoint
from seg.networks import build_network
from seg.options import ModeName
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
        self.resets = self._continuity.resets
        self.reset()

    def reset(self) -> None:
        """Forgets all earlier frames."""
        self._state: State | None = None
        self._continuity.forget()

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; see `Maps` for what comes out."""
        gap = self._continuity.follow(frame)
        if not gap:
            self._state = None
        with torch.inference_mode(), self._autocast():
            with self.clock.measure("preprocess"):
                pixels = np.require(frame.image, requirements=["C", "W"])  # torch takes no reversed or read-only view
                image = torch.from_numpy(pixels).to(self.device)[None]
                batch = self.module.preprocess(image)
            with self.clock.measure("network"):
                prediction = self.module.predict(batch)
                self._synchronize()
            with self.clock.measure("smoothing"):
                prediction, self._state = self.module.smooth(prediction, self._state, max(gap, 1))
                outputs = self.module.maps(prediction, *frame.image.shape[:2])
                maps = self._to_host(outputs)
        return maps

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
    mode: ModeName = "vq-dnn",
    samples: int | None = None,
    tau: float = 1.25,
    window: int | None = None,
    size: int | None = None,
    calibrated: bool | None = None,
    device: torch.device | None = None,
    keep_probs: bool = False,
    precision: str = "fp32",
) -> TorchSegmenter:
    """A segmenter from a bundled checkpoint's name or a file. `calibrated` None: where the checkpoint has a temperature."""
    path = find_checkpoint(model)
    tensors, meta = load_checkpoint(path)
    if calibrated and meta.temperature is None:
        raise InputError(f"{model}: the checkpoint has no temperature; calibrate it first or leave --calibrated away")
    options = dict(meta.options)
    if "encoder_weights" in options:  # what training began with; the weights are in the file now
        options["encoder_weights"] = None
    network = build_network(meta.architecture, options, len(meta.classes))
    load_weights(network, tensors, path)
    module = StreamingSegmenter(
        network,
        meta.mean,
        meta.std,
        size or meta.height,
        mode=mode,
        samples=samples,
        smoothing=TemporalSmoothing(tau, window),
        temperature=1.0 if calibrated is False or meta.temperature is None else meta.temperature,
    )
    return TorchSegmenter(module, meta, device or torch.device("cpu"), keep_probs=keep_probs, precision=precision)
