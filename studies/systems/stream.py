"""Measures the mean with a lag, and the pixels on label edges, on the 101 frames of CamVid's val stream.

Every network runs once a frame, and all rules get its prediction.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.frame import Frame, Maps
from steadyseg.core.lag import LaggedSmoothing, Smoothing
from steadyseg.core.method import MOTION_TAU, PUBLISHED_TAU, Method
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.evaluate import EdgeMetrics, FrameMetrics, seed_frames
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.torch_executor import streaming_module

LAGS = range(6)
EDGE_WIDTH = 3
KEYS = ("nll", "accuracy", "miou", "ece", "consistency")


class Row:
    """One rule over the stream: its state, the frames that wait for its output, and its figures."""

    def __init__(self, rule: Smoothing | None, classes: Any, edges: bool) -> None:
        self.rule, self.lag = rule, getattr(rule, "lag", 0)
        self.state: Any = None
        self.waiting: deque[Frame] = deque()
        self.figures = FrameMetrics.of(classes)
        self.edges = EdgeMetrics(classes, EDGE_WIDTH) if edges else None

    def add(self, frame: Frame, now: Prediction, gap: float, motion: Any) -> None:
        """Takes a frame's prediction, and measures the frame whose mean comes out."""
        self.waiting.append(frame)
        mean = now
        if self.rule:
            mean, self.state = self.rule(now, self.state, gap, motion if self.rule.motion else None)
        if len(self.waiting) > self.lag:
            ready, blank = self.waiting.popleft(), np.zeros(frame.image.shape[:2], np.uint8)
            maps = Maps(blank, blank, blank, blank, probs=mean.probs[0].numpy())
            self.figures.update(ready, maps)
            if self.edges:
                self.edges.update(ready, maps)

    def drain(self, now: Prediction) -> None:
        """Measures the last frames, which have no later ones."""
        for _ in range(self.lag):
            self.add(self.waiting[-1], now, float("inf"), None)

    def result(self) -> dict[str, Any]:
        found = {key: self.figures.result()[key] for key in KEYS} | {"frames": self.figures.frames}
        return found | ({"edges": self.edges.result()} if self.edges else {})


def rules(lags: Iterable[int]) -> dict[str, Smoothing | None]:
    """The rules by name: none, the mean along the motion without its gate, and the published weights with each lag."""
    lagged: dict[str, Smoothing | None] = {
        f"lag {lag}": LaggedSmoothing(PUBLISHED_TAU, lag) if lag else TemporalSmoothing(PUBLISHED_TAU) for lag in lags
    }
    return {"single frame": None, "along the motion": TemporalSmoothing(MOTION_TAU, motion=True)} | lagged


@torch.inference_mode()
def measure_stream(data: Path, name: str, lags: Iterable[int] = LAGS) -> dict[str, Mapping[str, Any]]:
    """Figures by mode (dnn: without dropout; bnn: one dropout pass a frame) and rule; logits are not tempered."""
    model, split = read_segmenter(name), open_split(data / "camvid", "val")
    rows: dict[str, Mapping[str, Any]] = {}
    for mode, method in (("dnn", Method("dnn")), ("bnn", Method("bnn", 1))):
        module = streaming_module(model, model.network(), method).eval()
        table = {rule: Row(smoothing, split.classes, mode == "dnn") for rule, smoothing in rules(lags).items()}
        estimate = MotionEstimator()
        for number, frame in enumerate(seed_frames(split.frames())):
            gap = 1 if number else 0
            motion = estimate(frame.image, module.state_size(*frame.image.shape[:2]), gap)
            now = module.predictor(module.preprocess(torch.from_numpy(frame.image)[None]))
            for row in table.values():
                row.add(frame, Prediction(now.probs, now.member_entropy), 1, motion)
        for row in table.values():
            row.drain(Prediction(now.probs, now.member_entropy))
        rows[mode] = {rule: row.result() for rule, row in table.items()}
    return rows
