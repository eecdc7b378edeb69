"""What `evaluate` measures of image classifiers: checkpoints, deep ensembles of them, and graph files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch

from app.evaluation.flags import EvaluateJob
from app.find_model import find_model
from classification.data.held_back import SPLIT, open_split_of
from classification.data.open import ClassificationSet, open_classification
from classification.evaluate import Batch, Classifier, default_samples
from classification.opening import open_classifiers
from core.classes import ClassList
from core.dropout import is_stochastic
from core.errors import InputError
from core.method import Method, ModeName
from core.novelty.opening import open_head
from core.prediction import Prediction
from core.reference import ReferenceScores
from core.system.machine import choose_device
from export.run.classifier import GraphClassifier


class Subject(Protocol):
    """A classifier that is measured."""

    classes: ClassList
    size: int
    """Side of its pictures in pixels."""
    sizes: dict[ModeName, list[int]]
    """By mode, how many passes or networks its predictions average; 0: dropout off. The last mode is the headline."""
    methods: dict[ModeName, Method]
    """By mode, what its largest ensemble computes; the temperature is that of all sizes."""
    executor: str
    device: str
    own_world: ReferenceScores | None
    """What novelty is measured by; None where nothing tells of it."""

    def by_size(self, batch: Batch, mode: ModeName) -> Iterator[Prediction]:
        """A prediction (B, K) for each of `sizes[mode]`."""
        ...

    def open_data(self, data: Path, split: str) -> ClassificationSet: ...

    def fit(self, mode: ModeName) -> dict[str, Any]:
        """The record of the fit that the temperature in use comes from; empty where none is in use or known."""
        ...


class TorchSubject:
    """A checkpoint, or several as a deep ensemble."""

    def __init__(self, job: EvaluateJob) -> None:
        if job.executor not in ("auto", "torch"):
            raise InputError(
                f"a classifier's checkpoint is run by torch, got --executor {job.executor}; steadyseg export "
                f"{job.model} "
                "-o c.onnx makes a graph file for others"
            )
        self.job = job
        networks, self.meta = open_classifiers(find_model(job.model), [find_model(name) for name in job.members])
        device = choose_device(job.device)
        # an ensemble has no fit of its own
        known = replace(self.meta, calibration={}, novelty={}) if job.members else self.meta
        self.classes, self.size = self.meta.classes, self.meta.height
        has_dropout = any(map(is_stochastic, networks))
        samples = default_samples(job.method.samples, job.method.mode, has_dropout)
        self.sizes: dict[ModeName, list[int]] = {}
        if job.method.mode != "bnn":
            self.sizes["dnn"] = [0] if has_dropout else list(range(1, len(networks) + 1))
        if samples:
            self.sizes["bnn"] = list(range(1, samples + 1))
        self.methods = {
            mode: replace(job.method, mode=mode, samples=samples if mode == "bnn" else 1).resolve(known)
            for mode in self.sizes
        }
        single = self.methods.get("dnn")
        head = open_head(find_model(job.model), known, single) if single else None
        self.own_world = head.own_world if head else None
        self.classifier = Classifier(networks, self.meta.mean, self.meta.std, device, job.seed, head)
        self.executor, self.device = f"torch {torch.__version__.split('+')[0]} fp32", device.type

    def by_size(self, batch: Batch, mode: ModeName) -> Iterator[Prediction]:
        sizes = self.sizes[mode]
        method = self.methods[mode]
        found = self.classifier.by_size(batch, mode, sizes[-1], None if method.adaptive else method.temperature)
        if sizes == [0]:  # of all networks
            *_, last = found
            yield last
        else:
            yield from found

    def open_data(self, data: Path, split: str) -> ClassificationSet:
        return open_split_of(data, split, self.meta, self.job.model)

    def fit(self, mode: ModeName) -> dict[str, Any]:
        return self.meta.fit_in_use(self.methods[mode])


class GraphSubject:
    """A graph file, which computes what it was made for."""

    def __init__(self, job: EvaluateJob) -> None:
        if job.members or job.method.temperature is not None:
            raise InputError(
                f"{job.model}: a graph file holds one network with its temperature; use the checkpoints instead"
            )
        self.model = job.model
        self.graph = GraphClassifier(Path(job.model), executor=job.executor, device=job.device)
        meta = self.graph.meta
        job.method.require(meta.method, job.model)
        self.classes, self.size = meta.classes, meta.height
        self.sizes: dict[ModeName, list[int]] = {meta.method.mode: [meta.method.samples]}
        self.methods: dict[ModeName, Method] = {meta.method.mode: meta.method}
        self.executor, self.device = self.graph.executor, self.graph.device
        self.own_world: ReferenceScores | None = None

    def by_size(self, batch: Batch, mode: ModeName) -> Iterator[Prediction]:
        _, pictures, _ = batch
        at_once = max(
            1, len(pictures) // self.graph.meta.method.samples
        )  # the passes of a picture are a batch of their own
        parts = [self.graph(part.numpy()) for part in pictures.split(at_once)]
        yield Prediction(torch.cat([part.probs for part in parts]), torch.cat([part.member_entropy for part in parts]))

    def open_data(self, data: Path, split: str) -> ClassificationSet:
        if split == SPLIT:
            raise InputError(
                f"{self.model}: a graph file does not say what its training held back; give the checkpoint"
            )
        return open_classification(data, split)

    def fit(self, mode: ModeName) -> dict[str, Any]:
        return {}
