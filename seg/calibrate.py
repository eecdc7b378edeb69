"""Calibration after training: temperature and conformal thresholds of labelled frames, and logit adjustment."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.conformal import ClassRisk, ConformalScores, Coverage
from steadyseg.core.evaluation.kept_logits import SplitLogits
from steadyseg.core.evaluation.temperature import GRID, TemperatureFit, TemperatureScan, grid_tensor
from steadyseg.core.familiarity.statistics import subsample
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.segmenter import Continuity
from steadyseg.core.temporal import State
from steadyseg.seg.evaluate import enlarge, probs_at
from steadyseg.seg.streaming import StreamingSegmenter

HEAD_BIASES = ("head.bias", "model.segmentation_head.bias", "model.segmentation_head.0.bias")
"""The last bias that is added to the logits, in our U-Net, an SMP network at half its input's size, and one at full
size."""
STRIDE = 2
"""Every second row and column is scanned. Smoothing that works pixel by pixel computes no other pixels."""


@torch.inference_mode()
def fit_temperature(
    module: StreamingSegmenter, frames: Iterable[Frame], classes: ClassList, grid: tuple[float, ...] = GRID
) -> TemperatureFit:
    """Fits the temperature in one pass over labelled frames, with the module's predictor and temporal rule, trying all
    temperatures at once.

    The module's own temperature does not matter. Frames without a label only feed the state.
    """
    device = next(module.predictor.parameters()).device
    network, temperatures = module.predictor.get_submodule("network"), grid_tensor(device, grid)
    predictors = {one: module.predictor_of(SubsampledLogits(network, one), temperatures) for one in (1, STRIDE)}
    scan = TemperatureScan(len(classes), classes.void_id, grid)
    continuity, estimate_motion = Continuity(), MotionEstimator()
    state: State | None = None
    for frame in frames:
        gap, size = continuity.gap_before(frame), frame.image.shape[:2]
        is_pixelwise = module.head_stride == 1 and module.size(*size) == size and not module.method.motion
        stride = STRIDE if is_pixelwise else 1
        if not gap:
            state = None
        motion = estimate_motion(frame.image, module.state_size(*size), gap) if module.method.motion else None
        pixels = torch.from_numpy(np.require(frame.image, requirements=["C", "W"])).to(device)[None]
        prediction, state = module.mean(pixels, state, max(gap, 1), motion, predictors[stride])
        if frame.label is None:
            continue
        label = subsample(torch.from_numpy(frame.label).to(device), STRIDE)
        probs = prediction.probs
        scan.update(probs if stride == STRIDE else subsample(enlarge(probs, size), STRIDE), label)
    return scan.fit()


class SubsampledLogits(SplitLogits):
    """A network, split like the given one, whose logits keep only every `stride`-th row and column."""

    def __init__(self, network: nn.Module, stride: int) -> None:
        super().__init__(network)
        self.stride = stride

    def suffix(self, shared: Any) -> Tensor:
        return subsample(super().suffix(shared), self.stride)


class ConformalFit:
    """Feeds labelled frames' probabilities to the conformal scores, and to the risk of a class where one is named."""

    def __init__(self, void: int | None, class_id: int | None = None) -> None:
        self.scores = ConformalScores(void)
        self.risk = None if class_id is None or void is None else ClassRisk(class_id, void)

    def add(self, probs: Tensor, label: Tensor) -> None:
        """probs (K, ...), label (...)."""
        self.scores.update(probs, label)
        if self.risk:
            self.risk.update(probs, label)


class ConformalCheck:
    """Coverage of prediction sets, and missed pixels of the controlled class, at given thresholds."""

    def __init__(self, fitted: Mapping[str, Any], classes: ClassList) -> None:
        conformal = fitted["conformal"]
        self.asked = conformal["coverage"]
        self.sets = Coverage(conformal["lac"], classes.void_id)
        self.control = fitted.get("class_risk")
        self.risk = ClassRisk(classes.names.index(self.control["class"]), classes.void_id) if self.control else None

    def update(self, frame: Frame, maps: Maps) -> None:
        """Adds a frame; frames without a label do not count."""
        if frame.label is not None:
            probs, label = probs_at(frame.label, maps)[0], torch.from_numpy(frame.label)
            self.sets.update(probs, label)
            if self.risk:
                self.risk.update(probs, label)

    def result(self) -> dict[str, Any]:
        """Metrics of the sets and, for the controlled class, the requested bound and the missed share."""
        record: dict[str, Any] = {"coverage_asked": self.asked, "lac": self.sets.result()}
        if self.risk and self.control:
            asked = {key: self.control[key] for key in ("class", "level", "threshold")}
            record["class_risk"] = asked | self.risk.at(self.control["threshold"])
        return record


def adjust_head(tensors: Mapping[str, Tensor], training: Mapping[str, Any]) -> dict[str, Tensor]:
    """A checkpoint's tensors with the logarithms of its class weights subtracted from the last bias.

    A loss weighted by w makes a network answer p_c w_c, not p_c. Subtracting log w_c from the logits gives p_c again
    (logit adjustment: Menon et al. 2021, arXiv 2007.07314), at no cost in the bias. Rare classes are then found less
    often, and right more often where they are found. InputError where the record holds no weights or equal weights, or
    has its weights adjusted already.
    """
    if training.get("class_weights_undone"):
        raise InputError("the class weights of this checkpoint are adjusted for already; omit --logit-adjustment")
    recorded = training.get("class_weights")
    if not isinstance(recorded, list) or len(set(recorded)) < 2:
        raise InputError("this checkpoint records no class weights, so there is nothing to undo")
    name = next(name for name in HEAD_BIASES if name in tensors)
    weights, bias = torch.tensor(recorded), tensors[name]
    if bool((weights <= 0).any()):
        raise InputError(
            "a class weight of this checkpoint is 0: that class was never trained and cannot be weighed back"
        )
    return {**tensors, name: (bias.float() - weights.log()).to(bias.dtype)}
