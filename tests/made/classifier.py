"""Small untrained classifiers as checkpoints, and folders of labelled pictures, for tests of every room."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.classes import ClassList
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.preprocess import Normalize

ANIMALS = ("cat", "dog", "eel", "fox", "gnu", "hen")


def save_classifier(
    path: Path, options: ClassifierOptions | None = None, seed: int = 0, size: int = 32, **meta: Any
) -> Path:
    """A checkpoint whose logits are stretched, so that it is surer here than there; `meta` overrides its record."""
    options = options or ClassifierOptions(channels=4, dropout=0.3, smoothing=True)
    torch.manual_seed(seed)
    record: dict[str, Any] = {
        "classes": ClassList.of_names(ANIMALS),
        "height": size,
        "width": size,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.2, 0.2, 0.2),
    } | meta
    network = build_classifier(options, len(record["classes"]))
    final = [module for module in network.modules() if isinstance(module, torch.nn.Linear)][-1]
    final.weight.data *= 20
    save_checkpoint(path, network.state_dict(), CheckpointMeta("classifier", dataclasses.asdict(options), **record))
    return path


def save_pictures(
    root: Path,
    per_class: int = 3,
    side: int = 40,
    names: tuple[str, ...] = ANIMALS,
    splits: tuple[str, ...] = ("train", "test"),
) -> Path:
    """An ImageFolder of noise, brighter from class to class."""
    generator = np.random.default_rng(0)
    for split in splits:
        for number, name in enumerate(names):
            (root / split / name).mkdir(parents=True)
            for i in range(per_class):
                top = 40 + 215 * (number + 1) // len(names)
                pixels = generator.integers(0, top, (side, side, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / split / name / f"{i}.png")
    return root


def save_likely_pictures(root: Path, model: Path) -> Path:
    """Writes an ImageFolder of 240 pictures of noise. Each label is drawn from the network's own probabilities at
    temperature 1.5, with and without dropout."""
    opened = read_classifier(model)
    network, meta = opened.network(), opened.meta
    torch.manual_seed(0)
    pictures = torch.from_numpy(np.random.default_rng(5).integers(0, 256, (240, 36, 36, 3), dtype=np.uint8))
    seen = Normalize(meta.mean, meta.std)(pictures[:, 2:34, 2:34].permute(0, 3, 1, 2))  # a view of 32 of 36 pixels
    with torch.no_grad():
        looks = [torch.softmax(network(seen) / 1.5, 1) for _ in range(3)]
        set_dropout_active(network, False)
        labels = torch.multinomial(torch.softmax(network(seen) / 1.5, 1) + sum(looks) / 3, 1)[:, 0]
    labels[:12] = torch.arange(12) // 2  # no class without a picture in either split
    for number, (picture, label) in enumerate(zip(pictures.numpy(), labels, strict=True)):
        folder = root / ("train", "test")[number % 2] / ANIMALS[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number}.png")
    return root


def random_input(side: int = 32, batch: int = 2) -> torch.Tensor:
    """(B, 3, s, s), as a network takes it."""
    return torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(side))
