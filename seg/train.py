"""The parts of a segmentation training, made from its configuration: data, network, loss, evaluation, record."""

import copy
import dataclasses
import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from steadyseg.core.classes import ClassList
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.model.checkpoint import CheckpointMeta, read_meta
from steadyseg.core.model.model import Model
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import Normalize, enlarge
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training.initial_weights import describe_head, load_initial_weights
from steadyseg.core.training.loaders import EpochLoader
from steadyseg.core.training.loop import epoch_order
from steadyseg.core.training.parts import Batch, Run, TrainingParts, count_steps, fit_batch, limit_threads
from steadyseg.core.training.run_folder import training_record
from steadyseg.seg.data.augment import Augment, Example, to_tensors
from steadyseg.seg.data.class_file import classes_of
from steadyseg.seg.data.rare import RarePictures, rare_classes
from steadyseg.seg.data.statistics import (
    DataStatistics,
    class_weights,
    count_pixels,
    describe_shares,
    measure,
    require_every_class,
)
from steadyseg.seg.loss import SegmentationLoss
from steadyseg.seg.mixture import Mixture, mix, mixed_order, open_others
from steadyseg.seg.networks.auxiliary import DeepSupervision
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.networks.imagenet import LICENCE, Pixel
from steadyseg.seg.networks.smp import expected_pixels, is_packaged
from steadyseg.seg.options import AugmentOptions, SegTrainConfig, check_training
from steadyseg.seg.pretrained import find_checkpoint, read_segmenter
from steadyseg.seg.training_set import LabelledImages, open_training_images

made_augment = lru_cache(maxsize=4)(Augment)
"""An `Augment` of these arguments, shared by all samples of an epoch."""


@dataclass(frozen=True)
class AugmentedImages(Dataset[Batch]):
    """Data set of the augmented samples of every epoch, each a function of (seed, epoch, sample)."""

    config: SegTrainConfig
    classes: ClassList
    images: LabelledImages | Mixture
    rare: RarePictures

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, Tensor]:
        epoch, index = key
        augment, seed = self.augment(epoch), mix_seed(self.config.loop.seed, epoch, index)
        drawn = self.rare.draw(mix_seed(seed, 1)) if random.Random(seed).random() < augment.options.paste else None
        other = (self._example(drawn[0]), self._label_value(drawn[1])) if drawn else None
        return augment(self._example(index), seed, other)

    def augment(self, epoch: int) -> Augment:
        """Returns the epoch's augmentation; InputError if the package that corrupts pictures is not installed."""
        void = 0 if isinstance(self.images, Mixture) else self.classes.void_id
        rare = tuple(map(self._label_value, self.rare.by_class))
        return made_augment(self.crops(epoch), self.config.size, void, rare)

    def _label_value(self, class_id: int) -> int:
        """Returns the value of a pixel that is labelled with this class alone."""
        return 1 << class_id if isinstance(self.images, Mixture) else class_id

    def _example(self, index: int) -> Example:
        return Example(*self.images[index])

    @cached_property
    def picture_size(self) -> tuple[int, int]:
        """(h, w) of the first picture at the network's size."""
        image, _ = self.images[0]
        return network_size(image.shape[0], image.shape[1], self.config.size)

    def crops(self, epoch: int) -> AugmentOptions:
        """Returns the augmentation of an epoch (from 0): the last epochs may have larger crops and no zoom."""
        config, options = self.config, self.config.augment
        remaining = config.loop.epochs - epoch
        if remaining <= config.full_image_epochs:
            height, width = self.picture_size
            low = max(options.scale_min, 1.0)  # a smaller picture would be padded: 44 % of a crop at zoom 0.75
            high = max(options.scale_max, low)
            options = dataclasses.replace(options, crop_height=height, crop_width=width, scale_min=low, scale_max=high)
        if remaining <= config.unzoomed_epochs:
            options = dataclasses.replace(options, scale_min=1.0, scale_max=1.0)
        return options


def prepare_segmentation(config: SegTrainConfig, run: Run) -> TrainingParts:
    """Opens the data, builds the network and checks every setting; InputError for the first invalid setting."""
    check_training(config)
    limit_threads(config.loop)
    classes = classes_of(config.data, config.classes)
    trained, held_out, held_out_names, remarks = open_training_images(config, classes)
    loop, lowered = fit_batch(config.loop, len(trained), run)
    config = dataclasses.replace(config, loop=loop)
    statistics = measure(trained, classes)
    if not config.allow_missing_classes:
        require_every_class(statistics.pixels, classes)
    held_out_pixels = count_pixels((label for _, label in held_out), classes)
    mean, std = normalization(config, statistics)
    normalize = Normalize(mean, std).to(run.device)
    network = make_network(config, classes)
    mixture = mix(config, classes, trained)
    loss = SegmentationLoss(config, classes, class_weights(statistics, config).to(run.device), mixture is not None)
    rare = RarePictures(statistics.pixels, rare_classes(statistics))
    examples = AugmentedImages(config, classes, mixture or trained, rare)
    examples.augment(0)  # a missing package is refused here, before the run folder is written
    order = (
        partial(mixed_order, mixture.sizes, config.loop, processes=run.processes)
        if mixture
        else partial(epoch_order, len(trained), config.loop, processes=run.processes)
    )
    steps_per_epoch = count_steps(mixture.drawn if mixture else len(trained), config.loop, run.processes)
    loader = EpochLoader(examples, config.loaders, order, config.loop.batch_size)
    head = describe_head(read_meta(find_checkpoint(config.init)), classes) if config.init else ()
    if head and config.keep_initial:
        raise InputError(f"keep_initial needs initial weights of the same classes: {head[0]}")
    about = (*lowered, *describe_shares(statistics.pixels, held_out_pixels, classes), *remarks, *head)
    others = open_others(config, classes, "val")
    evaluate = partial(
        evaluate_held_out, images=held_out, others=others, classes=classes, size=config.size, normalize=normalize
    )
    height, width = examples.picture_size
    licence = (read_meta(find_checkpoint(config.init)).licence if config.init else "") or initial_licence(config)

    def describe(seconds: float) -> CheckpointMeta:
        return CheckpointMeta(
            architecture=config.network,
            options=dataclasses.asdict(config.network_options),
            classes=classes,
            height=height,
            width=width,
            mean=mean,
            std=std,
            licence=licence,
            training=training_record(config, seconds, run.device, run.processes.count)
            | {
                "images": len(mixture or trained),
                "held_out": held_out_names or len(held_out),
                "class_weights": [round(weight, 6) for weight in loss.weights.tolist()],
            },
        )

    return TrainingParts(
        network=network,
        batches=SegmentationBatches(loader, normalize, run),
        loss=loss,
        steps_per_epoch=steps_per_epoch,
        images=len(mixture or trained),
        held_out=len(held_out),
        describe=describe,
        about=about,
        evaluate=evaluate if (held_out_pixels[:, :-1].sum(0) > 0).sum() > 1 else None,
        deployed=partial(deployed_network, config),
        data=hashlib.sha256(statistics.pixels.tobytes() + held_out_pixels.tobytes()).hexdigest()[:12],
    )


def make_network(config: SegTrainConfig, classes: ClassList) -> nn.Module:
    """Builds the network with its initial weights, a function of the seed, and the auxiliary heads if there are any."""
    torch.manual_seed(mix_seed(config.loop.seed))
    network = build_network(config.network, config.network_options, len(classes))
    if config.init:
        load_initial_weights(network, read_initial(config.init), classes, nn.Conv2d)
    return DeepSupervision(network, len(classes)) if config.auxiliary else network


def deployed_network(config: SegTrainConfig, trained: nn.Module) -> nn.Module:
    """Returns the network to save: without auxiliary heads, its weights averaged with the initial ones by
    `keep_initial`."""
    network = trained.network if isinstance(trained, DeepSupervision) else trained
    if not config.keep_initial or config.init is None:
        return network
    mean, initial = copy.deepcopy(network), read_initial(config.init).tensors
    for name, tensor in mean.state_dict().items():
        if tensor.is_floating_point():
            tensor.lerp_(initial[name].to(tensor), config.keep_initial)
    return mean


def normalization(config: SegTrainConfig, statistics: DataStatistics) -> tuple[Pixel, Pixel]:
    """Returns mean and standard deviation of the pixels: what the initial weights expect, else the data's own."""
    if config.init:
        meta = read_initial(config.init).meta
        return meta.mean, meta.std
    expected = expected_pixels(config.smp) if config.network == "smp" else None
    return expected or (statistics.mean, statistics.std)


def read_initial(name: str) -> Model:
    """Reads the checkpoint that a training begins with; InputError for a classifier's."""
    model = read_segmenter(name)
    if model.meta.classes.void is None:
        raise InputError(
            f"{model.path}: a classifier, whose weights fit no segmentation network; give a segmentation checkpoint"
        )
    return model


def initial_licence(config: SegTrainConfig) -> str:
    """Returns the licence note of packaged ImageNet weights that the network begins with; "" without them."""
    return LICENCE if config.network == "smp" and is_packaged(config.smp) else ""


@dataclass(frozen=True)
class SegmentationBatches:
    """Callable (epoch, from 0) -> this process's normalised batches; samples that fill no whole step are left out."""

    load: EpochLoader
    normalize: Normalize
    run: Run

    def __call__(self, epoch: int) -> Iterator[Batch]:
        for images, targets in self.load(epoch):
            yield self.normalize(images.to(self.run.device).float()), targets


def evaluate_held_out(
    network: nn.Module,
    *,
    images: LabelledImages,
    others: Mapping[str, LabelledImages],
    classes: ClassList,
    size: int,
    normalize: Normalize,
) -> dict[str, float]:
    """Returns accuracy, mIoU, NLL and ECE of single dropout-free passes on the held-out images, and the accuracy on
    each further set by its name."""
    set_dropout_active(network, False)
    predict = partial(measure_images, network, classes=classes, size=size, normalize=normalize)
    result, more = predict(images), {name: predict(one)["accuracy"] for name, one in others.items()}
    set_dropout_active(network, True)
    return {key: float(result[key]) for key in ("accuracy", "miou", "nll", "ece")} | more


def measure_images(
    network: nn.Module, images: LabelledImages, *, classes: ClassList, size: int, normalize: Normalize
) -> dict[str, Any]:
    """Returns all metrics of single passes."""
    metrics = StreamingMetrics(len(classes), classes.void)
    with torch.inference_mode():
        for image, label in images:
            picture, mask = to_tensors(image, label, *network_size(label.shape[0], label.shape[1], size))
            logits = enlarge(network(normalize(picture[None].to(normalize.scale.device).float())), mask.shape)
            metrics.update(torch.softmax(logits, 1).cpu(), mask[None])
    return metrics.result()
