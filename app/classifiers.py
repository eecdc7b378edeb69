"""Opened image classifiers: checkpoints, deep ensembles of them, and graph files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch

from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import HELD_OUT, open_classification, open_split_of
from steadyseg.classification.evaluate import Batch, Classifier, default_samples
from steadyseg.classification.pretrained import build_members
from steadyseg.core.classes import ClassList
from steadyseg.core.dropout import is_stochastic
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.method import Method, MethodKeywords, MethodOptions, ModeName
from steadyseg.core.model.model import Model
from steadyseg.core.prediction import Prediction
from steadyseg.core.reference import ReferenceScores
from steadyseg.core.system.machine import choose_device
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.runtime.classifier import GraphClassifier
from steadyseg.runtime.open_model import open_checkpoint, open_model


class OpenClassifier:
    """An opened image classifier and its methods of prediction."""

    name: str
    classes: ClassList
    size: int
    """Side of its pictures in pixels."""
    sizes: dict[ModeName, list[int]]
    """By mode, the numbers of passes or networks in the average of a prediction; 0: dropout off. The last mode is
    used."""
    methods: dict[ModeName, Method]
    """Methods of the largest ensemble by mode; all sizes share its temperature."""
    backend: str
    device: str
    reference: ReferenceScores | None = None
    """Scores of held-out pictures, the reference of familiarity; None without familiarity statistics."""

    def predict(self, pictures: np.ndarray) -> Prediction:
        """Predicts pictures (B, s, s, 3) uint8 RGB with its last mode: probabilities (B, K)."""
        batch = (0, torch.from_numpy(pictures), torch.zeros(len(pictures)).long())
        *_, prediction = self.by_size(batch, list(self.sizes)[-1])
        return prediction

    def by_size(self, batch: Batch, mode: ModeName) -> Iterator[Prediction]:
        """Yields a prediction (B, K) for each ensemble size in `sizes[mode]`."""
        raise NotImplementedError

    def open_data(self, data: Path, split: str) -> ClassificationSet:
        """Opens a split of labelled pictures; `held-out` is the part of train that its training held out."""
        if split == HELD_OUT:
            raise InputError(f"{self.name}: a graph file does not say what its training held out; give the checkpoint")
        return open_classification(data, split)

    def fit(self, mode: ModeName) -> dict[str, Any]:
        """Returns the record of the calibration in use; empty without a calibration."""
        return {}


def open_classifier(
    model: str | Path,
    options: MethodOptions = MethodOptions(),  # noqa: B008 (frozen)
    *,
    members: Sequence[str | Path] = (),
    backend: str = "auto",
    device: str = "auto",
    seed: int = 0,
    **method: Unpack[MethodKeywords],
) -> OpenClassifier:
    """Opens an image classifier: a pretrained name, a .safetensors file or an .onnx file of `steadyseg export`.

    Args:
        members: Further checkpoints; with them the model is a deep ensemble.
        seed: Seed of the dropout masks.
        method: Fields of `MethodOptions`, such as mode="dnn", which override `options`.

    Raises InputError for anything else, and for options that the model cannot fulfil.
    """
    others = [open_checkpoint(name) for name in members]
    return make_classifier(open_model(str(model)), replace(options, **method), others, backend, device, seed)


def make_classifier(
    model: Model | OnnxFile, options: MethodOptions, members: Sequence[Model], backend: str, device: str, seed: int
) -> OpenClassifier:
    """Makes a classifier of an opened model; see `open_classifier`."""
    if isinstance(model, Model):
        if backend not in ("auto", "torch"):
            raise InputError(
                f"a classifier's checkpoint is run by torch, got backend {backend}; steadyseg export "
                f"{model.name} -o c.onnx makes a graph file for others"
            )
        return CheckpointClassifier(model, options, members, choose_device(device), seed)
    if members:
        raise InputError(f"{model.path}: a graph file holds one network; use the checkpoints instead")
    return GraphFileClassifier(model, options, backend, device)


class CheckpointClassifier(OpenClassifier):
    """A checkpoint, or several as a deep ensemble, on torch."""

    def __init__(
        self, model: Model, options: MethodOptions, members: Sequence[Model], device: torch.device, seed: int
    ) -> None:
        self.name, self.meta = model.name, model.meta
        networks = build_members([model, *members])
        if members:  # an ensemble has no own fit
            model = model.with_record(replace(model.meta, calibration={}, familiarity={}))
        self.classes, self.size = self.meta.classes, self.meta.height
        has_dropout = any(map(is_stochastic, networks))
        samples = default_samples(options.samples, options.mode, has_dropout)
        self.sizes = {}
        if options.mode != "bnn":
            self.sizes["dnn"] = [0] if has_dropout else list(range(1, len(networks) + 1))
        if samples:
            self.sizes["bnn"] = list(range(1, samples + 1))
        self.methods = {
            mode: replace(options, mode=mode, samples=samples if mode == "bnn" else 1).resolve(model.meta)
            for mode in self.sizes
        }
        single = self.methods.get("dnn")
        head = familiarity_head(model, single) if single else None
        self.reference = head.reference if head else None
        self.classifier = Classifier(networks, self.meta.mean, self.meta.std, device, seed, head)
        self.backend, self.device = f"torch {torch.__version__.split('+')[0]} fp32", device.type

    def by_size(self, batch: Batch, mode: ModeName) -> Iterator[Prediction]:
        sizes = self.sizes[mode]
        method = self.methods[mode]
        predictions = self.classifier.by_size(batch, mode, sizes[-1], method.temperature)
        if sizes == [0]:  # without dropout, the last prediction is by all networks
            *_, last = predictions
            yield last
        else:
            yield from predictions

    def open_data(self, data: Path, split: str) -> ClassificationSet:
        return open_split_of(data, split, self.meta, self.name)

    def fit(self, mode: ModeName) -> dict[str, Any]:
        return self.meta.fit_in_use(self.methods[mode])


class GraphFileClassifier(OpenClassifier):
    """A classifier in a graph file, with the one method of its export."""

    def __init__(self, file: OnnxFile, options: MethodOptions, backend: str, device: str) -> None:
        self.name = str(file.path)
        self.graph = GraphClassifier(file, backend=backend, device=device)
        meta = self.graph.meta
        options.require(meta.method, self.name)
        self.classes, self.size = meta.classes, meta.height
        self.sizes, self.methods = {meta.method.mode: [meta.method.samples]}, {meta.method.mode: meta.method}
        self.backend, self.device = self.graph.backend, self.graph.device

    def by_size(self, batch: Batch, mode: ModeName) -> Iterator[Prediction]:
        _, pictures, _ = batch
        at_once = max(1, len(pictures) // self.graph.meta.method.samples)  # a picture's passes are a batch of their own
        parts = [self.graph.predict(part.numpy()) for part in pictures.split(at_once)]
        yield Prediction(torch.cat([part.probs for part in parts]), torch.cat([part.member_entropy for part in parts]))
