"""The parts of a classification training, made from its configuration: data, network, loss, evaluation, record."""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.classification.data.augment import Augment, Mixing
from steadyseg.classification.data.labelled import ClassificationSet
from steadyseg.classification.data.open import open_classification, split_held_out
from steadyseg.classification.evaluate import batches
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassTrainConfig, check_class_training
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError, first_line
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.preprocess import Normalize, mean_and_std
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import Processes
from steadyseg.core.training.initial_weights import describe_head, load_initial_weights
from steadyseg.core.training.loaders import EpochLoader
from steadyseg.core.training.loop import epoch_order
from steadyseg.core.training.parts import Batch, Run, TrainingParts, count_steps, fit_batch, limit_threads
from steadyseg.core.training.run_folder import training_record

Colour = tuple[float, float, float]
PUBLISHED_COLOURS: dict[str, tuple[Colour, Colour]] = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
}
"""Mean and standard deviation, RGB, 0..1, of the published trainings (arXiv 2105.12639, 2202.06709)."""
IMAGENET_COLOURS: tuple[Colour, Colour] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def prepare_classification(config: ClassTrainConfig, run: Run) -> TrainingParts:
    """Opens the data, builds the network and checks every setting; InputError for the first bad setting."""
    check_class_training(config)
    limit_threads(config.loop)
    source = open_classification(config.data, "train")
    trained, held_out = (source.subset(part) for part in split_held_out(source.labels, config.hold_out))
    classes, size = source.classes, config.size or source.default_size
    loop, lowered = fit_batch(config.loop, len(trained), run)
    config = dataclasses.replace(config, loop=loop)
    steps_per_epoch = count_steps(len(trained), config.loop, run.processes)
    torch.manual_seed(mix_seed(config.loop.seed))  # initial weights
    network = build_classifier(config.classifier, len(classes))
    initial = read_classifier(config.init) if config.init else None
    if initial:
        load_initial_weights(network, initial, classes, nn.Linear)
    require_size(network, config, size)
    mean, std = colours(trained, config, network)
    normalize = Normalize(mean, std).to(run.device)
    augment = Augment(config.pictures, trained, size, mean, config.loop.seed)
    mixing = Mixing(config.pictures, len(classes), config.loop.seed)
    order = partial(batches_of_epoch, len(trained), config.loop, run.processes)
    loader = EpochLoader(augment, config.loaders, order)

    def describe(seconds: float) -> CheckpointMeta:
        options = dataclasses.replace(config.classifier, pretrained=False)  # the weights are in the file
        return CheckpointMeta(
            architecture="classifier",
            options=dataclasses.asdict(options),
            classes=classes,
            height=size,
            width=size,
            mean=mean,
            std=std,
            licence=initial.meta.licence if initial else "",
            training=training_record(config, seconds, run.device, run.processes.count)
            | {"images": len(trained), "held_out": len(held_out), "list_hash": source.list_hash},
        )

    return TrainingParts(
        network=network,
        batches=ClassificationBatches(trained, loader, order, mixing, normalize),
        loss=partial(smoothed_loss, smoothing=config.pictures.label_smoothing),
        steps_per_epoch=steps_per_epoch,
        images=len(trained),
        held_out=len(held_out),
        describe=describe,
        evaluate=partial(evaluate_held_out, data=held_out, size=size, normalize=normalize) if len(held_out) else None,
        about=(*lowered, *(describe_head(initial.meta, classes) if initial else ())),
        data=f"{trained.list_hash} {held_out.list_hash}",
    )


@dataclass(frozen=True)
class ClassificationBatches:
    """Callable (epoch, from 0) -> this process's normalised batches; images that fill no whole step are left out."""

    images: ClassificationSet
    load: EpochLoader
    order: Callable[[int], list[list[int]]]
    mixing: Mixing
    normalize: Normalize

    def __call__(self, epoch: int) -> Iterator[Batch]:
        device = self.normalize.scale.device
        for (pictures, labels), chosen in zip(self.load(epoch), self.order(epoch), strict=True):
            yield self.mixing(self.normalize(pictures.to(device)), labels.to(device), epoch, chosen)


def batches_of_epoch(count: int, config: TrainConfig, processes: Processes, epoch: int) -> list[list[int]]:
    """Returns the samples of each of this process's batches of an epoch, from 0."""
    order, size = epoch_order(count, config, epoch, processes), config.batch_size
    return [order[start : start + size] for start in range(0, len(order), size)]


def smoothed_loss(logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, Tensor]:
    """Returns the cross-entropy summed over the batch, and the batch's size.

    Targets are class ids (B,), whose labels are smoothed, or the class shares (B, K) of mixed pictures.
    """
    mixed = targets.is_floating_point()
    targets = targets.to(logits.dtype) if mixed else targets
    total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=0.0 if mixed else smoothing)
    return total, logits.new_tensor(len(targets))


def evaluate_held_out(
    network: nn.Module, *, data: ClassificationSet, size: int, normalize: Normalize
) -> dict[str, float]:
    """Returns accuracy, NLL and ECE of single dropout-free passes on the held-out images; the test set is not used."""
    metrics = StreamingMetrics(len(data.classes))
    set_dropout_active(network, False)
    with torch.inference_mode():
        for _, views, labels in batches(data, size):
            pictures = views.permute(0, 3, 1, 2).to(normalize.scale.device)
            metrics.update(torch.softmax(network(normalize(pictures)), 1).cpu(), labels)
    set_dropout_active(network, True)
    result = metrics.result()
    return {key: float(result[key]) for key in ("accuracy", "nll", "ece")}


def colours(images: ClassificationSet, config: ClassTrainConfig, network: Any) -> tuple[Colour, Colour]:
    """Returns the mean and standard deviation for normalisation.

    They come from the pretrained weights, else from CIFAR's publication, else from the training images if these are in
    memory. An image folder gets ImageNet's, since measuring it would take a pass over all files.
    """
    if config.classifier.pretrained:
        known = network.model.pretrained_cfg
        return tuple(known["mean"]), tuple(known["std"])
    if images.name in PUBLISHED_COLOURS:
        return PUBLISHED_COLOURS[images.name]
    return IMAGENET_COLOURS if images.images is None else measured_colours(images.images)


def measured_colours(images: np.ndarray) -> tuple[Colour, Colour]:
    """Returns mean and standard deviation by channel, 0..1, of (N, h, w, 3) uint8, from the channels' histograms."""
    counts = np.zeros((3, 256), np.int64)
    for part in np.array_split(images, 64):  # bincount makes 8 bytes of each value
        counts += [np.bincount(part[..., channel].ravel(), minlength=256) for channel in range(3)]
    mean, std = mean_and_std(counts)
    return tuple(mean.round(4).tolist()), tuple(std.round(4).tolist())


def require_size(network: nn.Module, config: ClassTrainConfig, size: int) -> None:
    """Tries a batch of pictures of this size; InputError where the network cannot be trained on it."""
    batch = min(2, config.loop.batch_size)
    try:
        with torch.no_grad():
            copy.deepcopy(network).train()(torch.zeros(batch, 3, size, size))
    except InputError:
        raise
    except (AssertionError, RuntimeError, ValueError) as error:
        raise InputError(
            f"{config.classifier.network} cannot learn from {batch} pictures of {size}x{size} ({first_line(error)}); "
            "use another --size, --config img_size or --batch-size"
        ) from error
