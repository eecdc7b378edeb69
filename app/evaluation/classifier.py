"""What `evaluate` measures of image classifiers: checkpoints, deep ensembles of them, and graph files."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch

from app.evaluation.evaluate import EvaluateJob
from app.find_model import find_model
from classification.data.held_back import SPLIT, open_split_of
from classification.data.open import ClassificationSet, open_classification
from classification.evaluate import Batch, Classifier, default_samples
from classification.opening import open_classifiers
from core.classes import ClassList
from core.device import choose_device
from core.errors import InputError
from core.prediction import Prediction
from export.graph_classifier import GraphClassifier


class Subject(Protocol):
    """A classifier that is measured."""

    classes: ClassList
    size: int
    """Side of its pictures in pixels."""
    sizes: dict[str, list[int]]
    """By mode, how many passes or networks its predictions average; 0: dropout off. The last mode is the headline."""
    temperatures: dict[str, float]
    """By mode, what the logits are divided by."""
    executor: str
    device: str

    def by_size(self, batch: Batch, mode: str) -> Iterator[Prediction]:
        """A prediction (B, K) for each of `sizes[mode]`."""
        ...

    def open_data(self, data: Path, split: str) -> ClassificationSet: ...

    def fit(self, mode: str) -> dict[str, Any]:
        """The record of the fit that the temperature in use comes from; empty where none is in use or known."""
        ...


class TorchSubject:
    """A checkpoint, or several as a deep ensemble."""

    def __init__(self, job: EvaluateJob) -> None:
        if job.executor not in ("auto", "torch"):
            raise InputError(
                f"a classifier's checkpoint is run by torch, got --executor {job.executor}; steadyseg export {job.model} "
                "-o c.onnx makes a graph file for others"
            )
        self.job = job
        networks, self.meta = open_classifiers(find_model(job.model), [find_model(name) for name in job.members])
        device = choose_device(job.device)
        self.looks = Classifier(networks, self.meta.mean, self.meta.std, device, job.seed)
        self.classes, self.size = self.meta.classes, self.meta.height
        samples = default_samples(job.samples, job.mode, self.looks.has_dropout)
        self.sizes: dict[str, list[int]] = {}
        if job.mode != "bnn":
            self.sizes["dnn"] = [0] if self.looks.has_dropout else list(range(1, len(networks) + 1))
        if samples:
            self.sizes["bnn"] = list(range(1, samples + 1))
        self.temperatures = {mode: self._temperature(mode) for mode in self.sizes}
        self.executor, self.device = f"torch {torch.__version__.split('+')[0]} fp32", device.type

    def by_size(self, batch: Batch, mode: str) -> Iterator[Prediction]:
        sizes = self.sizes[mode]
        found = self.looks.by_size(batch, mode, sizes[-1], self.temperatures[mode])
        if sizes == [0]:  # of all networks
            *_, last = found
            yield last
        else:
            yield from found

    def open_data(self, data: Path, split: str) -> ClassificationSet:
        return open_split_of(data, split, self.meta, self.job.model)

    def fit(self, mode: str) -> dict[str, Any]:
        in_use = self.job.temperature is None and self.temperatures[mode] == self.meta.temperature(mode)
        return self.meta.calibration[mode] if in_use and not self.job.members else {}

    def _temperature(self, mode: str) -> float:
        """As asked, or the checkpoint's own of this mode; an ensemble has none of its own."""
        job = self.job
        if job.temperature is not None:
            if not 0 < job.temperature < math.inf:
                raise InputError(f"the temperature must be a positive number, got {job.temperature}")
            return job.temperature
        fitted = None if job.members else self.meta.temperature(mode)
        if job.calibrated and fitted is None:
            raise InputError(
                f"{job.model}: has no temperature for mode {mode}; make one with `steadyseg calibrate` or omit "
                "--calibrated on"
            )
        return 1.0 if fitted is None or job.calibrated is False else fitted


class GraphSubject:
    """A graph file, which computes what it was made for."""

    def __init__(self, job: EvaluateJob) -> None:
        if job.members or job.temperature is not None:
            raise InputError(
                f"{job.model}: a graph file holds one network with its temperature; use the checkpoints instead"
            )
        self.model = job.model
        self.graph = GraphClassifier(Path(job.model), executor=job.executor, device=job.device)
        meta = self.graph.meta
        calibrated = meta.temperature != 1.0
        for flag, asked, made in (
            ("mode", job.mode, meta.mode), ("samples", job.samples, meta.samples), ("calibrated", job.calibrated, calibrated),
        ):  # fmt: skip
            if asked is not None and asked != made:
                raise InputError(
                    f"{job.model}: was made for {flag} {made}, got {asked}; omit --{flag} or export it again"
                )
        self.classes, self.size = meta.classes, meta.height
        self.sizes: dict[str, list[int]] = {meta.mode: [meta.samples]}
        self.temperatures: dict[str, float] = {meta.mode: meta.temperature}
        self.executor, self.device = self.graph.executor, self.graph.device

    def by_size(self, batch: Batch, mode: str) -> Iterator[Prediction]:
        _, pictures, _ = batch
        at_once = max(1, len(pictures) // self.graph.meta.samples)  # the passes of a picture are a batch of their own
        parts = [self.graph(part.numpy()) for part in pictures.split(at_once)]
        yield Prediction(torch.cat([part.probs for part in parts]), torch.cat([part.member_entropy for part in parts]))

    def open_data(self, data: Path, split: str) -> ClassificationSet:
        if split == SPLIT:
            raise InputError(
                f"{self.model}: a graph file does not say what its training held back; give the checkpoint"
            )
        return open_classification(data, split)

    def fit(self, mode: str) -> dict[str, Any]:
        return {}
