"""Tiny networks that have learnt something, and the data they learnt it on, for the robustness studies."""

import dataclasses
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from made.classifier import save_classifier
from made.pictures import save_split
from made.shared import made_once
from PIL import Image
from torch import Tensor, nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.method import Method, settings
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.core.preprocess import Normalize
from steadyseg.core.training.layout import use_channels_last
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.options import UNetOptions

COLOURS = {"blue": (60, 90, 190), "green": (70, 170, 60), "red": (190, 70, 80)}
NAMES = tuple(COLOURS)
SIDE = 32
STILL = (48, 64)
MEAN_STD = {"mean": (0.45, 0.45, 0.45), "std": (0.25, 0.25, 0.25)}
CALIBRATION = {
    "dnn": {
        **settings(Method("dnn")),
        "temperature": 1.5,
        "conformal": {"coverage": 0.9, "lac": 0.7},
        "data": "stills",
        "split": "val",
    }
}


def coloured(class_id: int, seed: int, size: tuple[int, int] = (SIDE, SIDE)) -> np.ndarray:
    """(H, W, 3) uint8: a class's colour, blotched and noisy."""
    generator = np.random.default_rng([class_id, seed])
    blotches = np.kron(generator.normal(0, 35, (size[0] // 8, size[1] // 8, 3)), np.ones((8, 8, 1)))
    return np.clip(np.array(COLOURS[NAMES[class_id]]) + blotches + generator.normal(0, 12, (*size, 3)), 0, 255).astype(
        np.uint8
    )


def image_folder(root: Path, count: int = 4, side: int = SIDE) -> Path:
    """`test/CLASS/*.png`; the last one shows another class, so that no network is always right."""
    for class_id, name in enumerate(NAMES):
        (root / "test" / name).mkdir(parents=True)
        for number in range(count):
            shown = (class_id + 1) % len(NAMES) if number == count - 1 else class_id
            Image.fromarray(coloured(shown, number, (side, side))).save(root / "test" / name / f"{number}.png")
    return root


def still(seed: int, size: tuple[int, int] = STILL) -> tuple[np.ndarray, np.ndarray]:
    """A picture of three colours side by side, whose edges the seed moves, and its labels; a void line."""
    generator = np.random.default_rng(seed)
    edges = generator.integers(size[1] // 4, size[1] // 2), generator.integers(size[1] // 2 + 4, size[1] - 8)
    label = np.broadcast_to(np.digitize(np.arange(size[1]), edges).astype(np.uint8), size).copy()
    image = np.select([label[..., None] == i for i in range(3)], [coloured(i, seed, size) for i in range(3)])
    label[:4] = CAMVID.void_id
    return image, label


def stills_folder(root: Path, count: int = 4, size: tuple[int, int] = STILL) -> Path:
    """`test` and `val`, the latter one still that a camera's noise makes a stream."""
    for split in ("test", "val"):
        pairs = []
        for number in range(count):
            image, label = still(number if split == "test" else 77, size)
            if split == "val":
                noise = np.random.default_rng(number).normal(0, 25, image.shape)
                image = np.clip(image + noise, 0, 255).astype(np.uint8)
            pairs.append((str(number), image, label))
        save_split(root, split, pairs)
    return root


def fit(network: nn.Module, pictures: np.ndarray, labels: Tensor, steps: int, void: int = -100) -> None:
    """A few steps on all pictures at once, dropout off; BatchNorm learns their statistics first."""
    torch.manual_seed(0)
    use_channels_last(network, torch.device("cpu"))  # as the product's trainings do: the layer is too narrow for oneDNN
    set_dropout_active(network, False)
    batch = Normalize(*MEAN_STD.values())(torch.from_numpy(pictures).permute(0, 3, 1, 2))
    network.train()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the plain mean
    with torch.no_grad():
        network(batch)
    network.eval()
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(network(batch), labels, ignore_index=void).backward()
        optimizer.step()


def classifier(path: Path, dropout: float = 0.3, seed: int = 0, names: tuple[str, ...] = NAMES) -> Path:
    """A narrow network that separates the colours."""
    torch.manual_seed(seed)
    options = ClassifierOptions(network="resnet18", channels=4, dropout=dropout)
    network = build_classifier(options, len(names))
    labels = [i for i in range(len(NAMES)) for _ in range(4)]
    fit(network, np.stack([coloured(i, 50 + n) for n, i in enumerate(labels)]), torch.tensor(labels), 12)
    meta = CheckpointMeta(
        "classifier", dataclasses.asdict(options), ClassList.of_names(names), height=SIDE, width=SIDE, **MEAN_STD
    )
    save_checkpoint(path, network.state_dict(), meta)
    return path


def segmenter(path: Path, dropout: float = 0.3, seed: int = 0, calibrated: bool = False) -> Path:
    """A narrow network that separates the colours, pixel by pixel, at the height of a still."""
    torch.manual_seed(seed)
    options = dataclasses.asdict(UNetOptions(channels=4, dropout=dropout))
    network = build_network("unet", options, len(CAMVID))
    learnt = [still(100 + number) for number in range(4)]
    labels = torch.from_numpy(np.stack([label for _, label in learnt])).long()
    fit(network, np.stack([image for image, _ in learnt]), labels, 40, CAMVID.void_id)
    meta = CheckpointMeta(
        "unet",
        options,
        CAMVID,
        height=STILL[0],
        width=STILL[1],
        calibration=CALIBRATION if calibrated else {},
        **MEAN_STD,
    )
    save_checkpoint(path, network.state_dict(), meta)
    return path


def made_room() -> Path:
    """Networks of both kinds with and without dropout, and their data. Not to be written to."""

    def fill(root: Path) -> None:
        root.mkdir()
        classifier(root / "drop.safetensors")
        classifier(root / "plain.safetensors", dropout=0.0, seed=1)
        options, classes = ClassifierOptions(channels=3, smoothing=True), ClassList.of_names(NAMES)
        save_classifier(root / "smooth.safetensors", options, size=SIDE, classes=classes)
        segmenter(root / "still.safetensors", calibrated=True)
        segmenter(root / "sure.safetensors", dropout=0.0, seed=1)
        image_folder(root / "pictures")
        image_folder(root / "cifar10")
        stills_folder(root / "stills")

    return made_once("room", fill)
