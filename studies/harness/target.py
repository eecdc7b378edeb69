"""A network under study, classifier or segmentation alike: pictures in, what each method predicts out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.classification.pretrained import require_classes
from steadyseg.core.dropout import is_stochastic, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.head import FamiliarityHead, WatchedPredictor
from steadyseg.core.familiarity.stored import familiarity_head
from steadyseg.core.method import Method, MethodOptions, draws_dropout, method_of_fit
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.picture_size import network_size
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import forward_passes
from steadyseg.core.preprocess import Normalize, nearest, resize
from steadyseg.runtime.open_model import open_checkpoint
from steadyseg.seg.evaluate import enlarge
from steadyseg.studies.harness.networks import name_of

DNN = Method("dnn")
CLASSIFIER_SAMPLES = (1, 2, 5)
"""Dropout passes that a classifier is measured with if nothing else is asked for; the published curves end at 50."""


class TargetNetwork:
    """A network with its record, on its device. With `calibrated`, calibrated modes use their calibration."""

    def __init__(
        self,
        name: str,
        network: nn.Module,
        meta: CheckpointMeta,
        device: torch.device,
        calibrated: bool = True,
        head: FamiliarityHead | None = None,
    ) -> None:
        """`head`: tells in one pass how novel a picture is."""
        self.name, self.meta, self.device = name, meta, device
        self.calibrated = calibrated
        self.head = head.to(device) if head else None
        self.network = network.to(device).to(memory_format=torch.channels_last).eval().requires_grad_(False)
        self.normalize = Normalize(meta.mean, meta.std).to(device)
        self.is_segmentation = meta.classes.void is not None
        set_dropout_active(self.network, True)
        self.has_dropout = is_stochastic(self.network)

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.meta.classes)

    def about(self) -> dict[str, Any]:
        """Describes the network in a report."""
        meta = self.meta
        return {
            "model": self.name,
            "architecture": meta.architecture,
            "dropout": self.has_dropout,
            "height": meta.height,
        }

    def methods(self, samples: Sequence[int] = ()) -> list[Method]:
        """`dnn`, and where there is dropout `bnn` with so many passes (classifiers: 1, 2 and 5 by default)."""
        chosen = samples or (() if self.is_segmentation else CLASSIFIER_SAMPLES)
        return [DNN, *(Method("bnn", count) for count in sorted(chosen) if self.has_dropout)]

    def fit(self, method: Method) -> dict[str, Any]:
        """The calibration of this method; empty where there is none or calibration is off."""
        return self.meta.fit_in_use(replace(method, calibrated=self.calibrated))

    def temperature(self, method: Method) -> float:
        """Divisor of the logits; 1 where the method is not calibrated."""
        return float(self.fit(method).get("temperature", 1.0))

    @property
    def calibrated_methods(self) -> list[Method]:
        """The methods whose calibration is in use."""
        return [method_of_fit(fit) for fit in self.meta.calibration.values()] if self.calibrated else []

    def pixels(self, images: Sequence[np.ndarray]) -> Tensor:
        """Pictures (H, W, 3) uint8 of one size -> (B, 3, h, w) uint8 at the network's size.

        Raises InputError for a classifier whose size is another: what it sees of a picture is cut before it is
        corrupted.
        """
        stacked = torch.from_numpy(np.stack(images)).to(self.device).permute(0, 3, 1, 2)
        if self.is_segmentation:
            return resize(stacked, self.size(*images[0].shape[:2]))
        if stacked.shape[-2:] != (self.meta.height, self.meta.width):
            height, width = images[0].shape[:2]
            raise InputError(f"{self.name} sees {self.meta.width}x{self.meta.height} pixels, got {width}x{height}")
        return stacked

    def size(self, height: int, width: int) -> tuple[int, int]:
        """(h, w) at which a segmentation network sees a picture of H x W."""
        return network_size(height, width, self.meta.height)

    def predict(
        self, images: Sequence[np.ndarray], methods: Sequence[Method], seed: int
    ) -> Iterator[tuple[Method, Prediction]]:
        """Pictures (H, W, 3) uint8 of one size -> each method's prediction, at the network's size.

        The masks depend on the seed alone, and the passes of a shorter method are the first of a longer one's.
        """
        yield from self._predict(self.normalize(self.pixels(images)), methods, seed)

    def predict_pixels(
        self, pixels: Tensor, methods: Sequence[Method], seed: int
    ) -> Iterator[tuple[Method, Prediction]]:
        """Each method's prediction for pixels (B, 3, h, w) in 0..1 at the network's size, as attacks and noise leave
        them."""
        yield from self._predict(self.normalize(255.0 * pixels), methods, seed)

    def logits(self, batch: Tensor, mode: str, seed: int | None = None) -> Tensor:
        """One pass of a normalised batch (B, 3, h, w), with dropout in the bnn modes."""
        self.switch(mode, seed)
        return self.network(batch)

    def labels_at(self, labels: Tensor, size: tuple[int, int]) -> Tensor:
        """(B, H, W) labels at the network's size, by nearest neighbour; (B,) as they are."""
        return nearest(labels, size) if self.is_segmentation and tuple(labels.shape[-2:]) != size else labels

    def switch(self, mode: str, seed: int | None) -> None:
        """Dropout on or off, and its masks from the seed."""
        set_dropout_active(self.network, draws_dropout(mode))
        if draws_dropout(mode) and seed is not None:
            torch.manual_seed(seed)

    @torch.inference_mode()
    def _predict(self, batch: Tensor, methods: Sequence[Method], seed: int) -> Iterator[tuple[Method, Prediction]]:
        if DNN in methods:
            yield DNN, self._single_pass(batch)
        wanted = [method for method in methods if method.mode == "bnn"]
        if not wanted:
            return
        self.switch("bnn", seed)
        means: dict[Method, Prediction] = {}
        for count, logits in enumerate(
            forward_passes(self.network, batch, max(method.samples for method in wanted)), start=1
        ):
            for method in (method for method in wanted if method.samples >= count):
                now = Prediction.from_logits(logits, self.temperature(method))
                means[method] = now if count == 1 else means[method].blend(now, 1.0 / count)
                if method.samples == count:
                    yield method, means.pop(method)

    def _single_pass(self, batch: Tensor) -> Prediction:
        """One pass without dropout, with familiarity where the network has a head for it."""
        self.switch("dnn", None)
        if self.head is None:
            return Prediction.from_logits(self.network(batch), self.temperature(DNN))
        watched = WatchedPredictor(self.network, self.head, self.temperature(DNN))
        try:
            return watched.predict(*watched.forward_with_scores(batch))
        finally:
            watched.taps.remove()


def at_size_of(probs: Tensor, labels: Tensor) -> Tensor:
    """(B, K, h, w) at the size of the labels (B, H, W); (B, K) as they are."""
    return enlarge(probs, tuple(labels.shape[1:])) if probs.ndim == 4 else probs


def open_targets(models: Sequence[str], device: torch.device, calibrated: bool = True) -> list[TargetNetwork]:
    """The networks by name or file; InputError unless they are of one kind and know the same classes."""
    subjects = [open_target(*one, device, calibrated) for one in zip(models, short_names(models), strict=True)]
    require_alike(subjects)
    return subjects


def require_alike(subjects: Sequence[TargetNetwork]) -> None:
    """Raises InputError unless all label the same things with the same classes."""
    first = subjects[0]
    for other in subjects[1:]:
        if other.is_segmentation != first.is_segmentation:
            raise InputError(f"{first.name} and {other.name} cannot be compared: one labels pictures, the other pixels")
        require_classes(other.meta.classes, first.meta.classes, other.name, first.name)


def open_target(model: str, name: str, device: torch.device, calibrated: bool = True) -> TargetNetwork:
    """Opens a network, with its familiarity head where it has one."""
    opened = open_checkpoint(model)
    head = familiarity_head(opened, MethodOptions(mode="dnn").resolve(opened.meta))
    return TargetNetwork(name, opened.network(), opened.meta, device, calibrated, head)


def short_names(models: Sequence[str]) -> list[str]:
    """File names without folder and ending, or a run's folder where the file is its model; whole where that is not
    unique."""
    short = [name_of(model) for model in models]
    names = [name if name and short.count(name) == 1 else model for name, model in zip(short, models, strict=True)]
    if len(set(names)) != len(names):
        raise InputError(f"a network is named twice: {', '.join(names)}")
    return names
