"""Classification training: data, loss and network from one configuration, run by core's loop."""

import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import Dataset

from classification.data.augment import Augment, Mixing
from classification.data.open import ClassificationSet, open_classification, training_indices
from classification.networks.build import build_classifier
from classification.options import ClassTrainConfig, check_class_training
from core.dropout import set_dropout_active
from core.errors import InputError
from core.evaluation.metrics import StreamingMetrics
from core.model.checkpoint import CheckpointMeta
from core.preprocess import Normalize
from core.seeds import mix_seed
from core.training.distributed import SINGLE_PROCESS, Processes
from core.training.loop import Batch, epoch_order
from core.training.run import TrainingRun
from core.training.run_folder import training_record
from core.training.workers import load_batches

Colour = tuple[float, float, float]
PUBLISHED_COLOURS: dict[str, tuple[Colour, Colour]] = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
}
"""Mean and standard deviation, RGB, 0..1, of the published trainings (arXiv 2105.12639, 2202.06709)."""
IMAGENET_COLOURS: tuple[Colour, Colour] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
EVALUATED = 256
"""Pictures per network call in an evaluation, as published."""


@dataclass(frozen=True)
class EpochView(Dataset[tuple[Tensor, Tensor] | InputError]):
    """The batches of one epoch, a function of (seed, epoch, samples)."""

    augment: Augment
    labels: np.ndarray
    batches: list[list[int]]
    epoch: int

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor] | InputError:
        """(B, 3, s, s) uint8 and (B,) ids; a picture that cannot be read travels as its error, which a worker cannot
        raise in one line."""
        chosen = self.batches[number]
        try:
            return self.augment(self.epoch, chosen), torch.from_numpy(self.labels[chosen])
        except InputError as error:
            return error


class ClassTraining(TrainingRun):
    """One training made ready: everything is opened and checked before the first step."""

    held_back: ClassificationSet

    def __init__(
        self, config: ClassTrainConfig, run: Path, device: str = "auto", processes: Processes = SINGLE_PROCESS
    ) -> None:
        check_class_training(config)
        super().__init__(config, run, device, processes)
        source = open_classification(config.data, "train")
        trained, held_back = training_indices(source.labels, config.fraction, config.hold_back, config.loop.seed)
        self.images, self.held_back = source.subset(trained), source.subset(held_back)
        self.classes, self.size = source.classes, config.size or source.default_size
        self.count_steps(len(self.images))
        torch.manual_seed(mix_seed(config.loop.seed))  # initial weights
        self.network = build_classifier(config.classifier, len(self.classes))
        require_size(self.network, config, self.size)
        self.mean, self.std = colours(source, config, self.network)
        self.normalize = Normalize(self.mean, self.std).to(self.device)
        self.augment = Augment(config.pictures, self.images, self.size, self.mean, config.loop.seed)
        self.mixing = Mixing(config.pictures, len(self.classes), config.loop.seed)

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """Accuracy, NLL and ECE of single dropout-free passes on the held-back images; the test set is never looked
        at."""
        metrics = StreamingMetrics(len(self.classes))
        set_dropout_active(network, False)
        with torch.inference_mode():
            for start in range(0, len(self.held_back), EVALUATED):
                indices = range(start, min(start + EVALUATED, len(self.held_back)))
                views = [self.held_back.evaluation_view(self.held_back[i][0], self.size) for i in indices]
                pictures = torch.from_numpy(np.stack(views)).permute(0, 3, 1, 2).to(self.device)
                probs = torch.softmax(network(self.normalize(pictures)), 1).cpu()
                metrics.update(probs, torch.from_numpy(self.held_back.labels[indices.start : indices.stop]))
        set_dropout_active(network, True)
        result = metrics.result()
        return {key: float(result[key]) for key in ("accuracy", "nll", "ece")}

    def batches(self, epoch: int) -> Iterator[Batch]:
        """This process's normalised batches of an epoch; a last batch that is not full is left out."""
        config = self.config
        order = epoch_order(len(self.images), config.loop, epoch, self.processes)
        size = config.loop.batch_size
        chosen = [order[start : start + size] for start in range(0, len(order), size)]
        view = EpochView(self.augment, self.images.labels, chosen, epoch)
        for made, indices in zip(load_batches(view, config.workers), chosen, strict=True):
            if isinstance(made, InputError):
                raise made
            pictures, labels = made
            pictures = self.normalize(pictures.to(self.device))
            yield self.mixing(pictures, labels.to(self.device), epoch, indices)

    def loss(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy to ids (B,), smoothed, or to mixed class shares (B, K), summed over the batch; and its size."""
        if targets.is_floating_point():
            total = F.cross_entropy(logits, targets.to(logits.dtype), reduction="sum")
        else:
            smoothing = self.config.pictures.label_smoothing
            total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        return total, logits.new_tensor(len(targets))

    def meta(self, seconds: float) -> CheckpointMeta:
        """The record that travels with the weights."""
        record = training_record(self.config, seconds, self.device, self.processes.count)
        options = dataclasses.replace(self.config.classifier, pretrained=False)  # the weights are in the file
        return CheckpointMeta(
            architecture="classifier",
            options=dataclasses.asdict(options),
            classes=self.classes,
            height=self.size,
            width=self.size,
            mean=self.mean,
            std=self.std,
            training=record | {"images": len(self.images), "held_back": len(self.held_back)},
        )


def colours(source: ClassificationSet, config: ClassTrainConfig, network: Any) -> tuple[Colour, Colour]:
    """Mean and standard deviation that pictures are normalised with: those of the pretrained weights where there are
    some, CIFAR's published ones for CIFAR, ImageNet's for every ImageFolder (measuring would read all of its pictures
    first)."""
    if config.classifier.pretrained:
        known = network.model.pretrained_cfg
        return tuple(known["mean"]), tuple(known["std"])
    return PUBLISHED_COLOURS.get(source.name, IMAGENET_COLOURS)


def require_size(network: nn.Module, config: ClassTrainConfig, size: int) -> None:
    """InputError where the network cannot be trained on batches of this many pictures of this size."""
    batch = min(2, config.loop.batch_size)
    try:
        with torch.no_grad():
            copy.deepcopy(network).train()(torch.zeros(batch, 3, size, size))
    except InputError:
        raise
    except (AssertionError, RuntimeError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{config.classifier.model} cannot learn from {batch} pictures of {size}x{size} ({reason}); use "
            f"another --size, "
            "--img-size or --batch-size"
        ) from error
