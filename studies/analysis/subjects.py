"""The networks of a study with the pictures that each of them sees: checkpoints of either kind, and timm's by name."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadyseg.classification.data.open import HELD_OUT, TRAINED, open_classification
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.layout import TIMM
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import ARCHITECTURE
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.seeds import mix_seed
from steadyseg.core.system.machine import choose_device
from steadyseg.studies.analysis.flags import StudyOptions
from steadyseg.studies.analysis.measures.features import Layout, layout_of
from steadyseg.studies.harness.pictures import Pictures, open_pictures
from steadyseg.studies.harness.target import TargetNetwork, open_target, require_alike, short_names

IMAGENET_CLASSES = 1000
"""Outputs of timm's pretrained networks, as this product opens them."""


@dataclass(frozen=True, eq=False)
class StudyTarget:
    """A network under study."""

    subject: TargetNetwork
    pictures: Pictures
    layout: Layout
    labelled: bool = True
    """True if the network's outputs are the data's classes."""

    @property
    def name(self) -> str:
        return self.subject.name

    def batch(self, numbers: range) -> Tensor:
        """(B, 3, h, w) normalised pictures of these numbers."""
        images = self.pictures.images[numbers.start : numbers.stop]
        return self.subject.normalize(self.subject.pixels(images))

    def truth(self, numbers: range) -> Tensor:
        """(B,) or (B, H, W) labels at the pictures' size, on the network's device."""
        return self.pictures.truth(numbers).to(self.subject.device)


def open_study_targets(
    options: StudyOptions, split: str, images: tuple[int, int], needs_labels: bool
) -> list[StudyTarget]:
    """The networks in the order of their names; InputError unless they are of one kind and fit the data.

    `images`: how many pictures for classifiers and for segmentation networks where the options do not say.
    """
    device = choose_device(options.device)
    found = []
    for model, name in zip(options.models, short_names(options.models), strict=True):
        subject, labelled = open_one(model, name, options, split, device)
        if needs_labels and not labelled:
            raise InputError(
                f"{model}: its {IMAGENET_CLASSES} outputs are ImageNet's classes, not the classes of "
                f"{options.data}, whose labels this study needs. Train it there (train classification "
                "--network timm:NAME) or give --config timm_weights=random"
            )
        require_data(options.data, split, subject)
        count = options.images or images[subject.is_segmentation]
        pictures = open_pictures(options.data, split, [subject], count, options.seed)
        found.append(StudyTarget(subject, pictures, layout_of(subject.network), labelled))
    require_alike([target.subject for target in found])
    return found


def open_one(
    model: str, name: str, options: StudyOptions, split: str, device: torch.device
) -> tuple[TargetNetwork, bool]:
    """(network, whether its outputs are the data's classes)."""
    if model.startswith(TIMM):
        network, meta = open_timm(model, options, split)
        return TargetNetwork(name, network, meta, device), options.timm_weights == "random"
    return open_target(model, name, device), True


def open_timm(model: str, options: StudyOptions, split: str) -> tuple[Any, CheckpointMeta]:
    """A network of the library with the size and colours that it was made for; its record has the data's classes."""
    if split in (HELD_OUT, TRAINED):
        raise InputError(f"{model} comes without a record of what its training saw; give another --split")
    classes: ClassList = open_classification(options.data, split).classes
    pretrained = options.timm_weights == "pretrained"
    settings = ClassifierOptions(network=model, pretrained=pretrained)
    torch.manual_seed(mix_seed(options.seed))
    network: Any = build_classifier(settings, IMAGENET_CLASSES if pretrained else len(classes))
    known = network.model.pretrained_cfg
    side, mean, std = known["input_size"][-1], tuple(known["mean"]), tuple(known["std"])
    return network, CheckpointMeta(ARCHITECTURE, asdict(settings), classes, side, side, mean, std)


def require_data(data: Path, split: str, subject: TargetNetwork) -> None:
    """Raises InputError where the data is labelled for the other task."""
    pixels = any((data / f"{split}{ending}").is_dir() for ending in ("annot", "_labels"))
    if pixels and not subject.is_segmentation:
        raise InputError(
            f"{subject.name} is an image classifier and {data} holds labelled pixels; give CIFAR or an ImageFolder, or "
            "a segmentation network"
        )
