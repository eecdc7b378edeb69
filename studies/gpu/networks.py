"""PyTorch on a device: steps of a training, the published network at its full width, and the speed of inference."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import CheckFailed
from steadyseg.core.method import MethodOptions, ModeName
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.model import Model
from steadyseg.core.preprocess import Normalize
from steadyseg.core.training.layout import use_channels_last
from steadyseg.core.training.loop import train_step
from steadyseg.core.training.optimizer import make_optimizer
from steadyseg.core.training.parts import Run
from steadyseg.runtime.torch_backend import torch_backend
from steadyseg.seg.loss import SegmentationLoss
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.presets import PRESETS, with_crops_of_size
from steadyseg.seg.pretrained import BUILDERS, read_segmenter
from steadyseg.seg.train import make_network
from steadyseg.street.drive import StreetSet
from steadyseg.studies.gpu.files import Place, Row, rate, timed, whole_step

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
PICTURES, STEPS = 367, 8
"""CamVid's training pictures; steps whose loss must fall."""
APART = 0.02
"""Largest relative difference of the first loss between a device and the CPU in fp32."""
MODES: tuple[ModeName, ...] = ("dnn", "vq-dnn", "bnn", "vq-bnn")
"""Mode bnn has 30 passes a frame, the others have one."""


def at_size(preset: SegTrainConfig, size: int, **unet: Any) -> SegTrainConfig:
    """The preset at this height of the input, with options of the U-Net."""
    return with_crops_of_size(replace(preset, size=size, unet=replace(preset.unet, **unet)), preset)


def published(place: Place) -> SegTrainConfig:
    """The published training of width 64 with dropout 0.5, and with spatial smoothing, which needs conv-bn-relu."""
    return at_size(PRESETS["replica"], place.size, smoothing=True, order="conv-bn-relu")


class Training:
    """A training on one batch of pictures of the drawn street."""

    def __init__(self, config: SegTrainConfig, device: str, number: str) -> None:
        self.loop = replace(config.loop, precision=number)  # type: ignore[arg-type]
        self.run, self.network = Run(Path(), torch.device(device)), make_network(config, CAMVID)
        use_channels_last(self.network, self.run.device)
        torch.backends.cudnn.benchmark = True  # as in a training
        street = StreetSet(self.loop.batch_size, config.augment.crop_height, config.augment.crop_width)
        images, labels = (np.stack(one) for one in zip(*(street[i] for i in range(len(street))), strict=True))
        pictures = Normalize(MEAN, STD)(torch.from_numpy(images).permute(0, 3, 1, 2))
        self.batch = [(pictures, torch.from_numpy(labels).long())]
        self.loss = SegmentationLoss(config, CAMVID, torch.ones(len(CAMVID), device=device))
        self.optimizer = make_optimizer(self.network, self.loop)
        self.scaler = torch.amp.GradScaler(device, enabled=number == "fp16")

    def step(self) -> float:
        return train_step(self.network, self.batch, self.loss, self.optimizer, self.scaler, self.loop, self.run)


def steps(place: Place, config: SegTrainConfig, number: str) -> Row:
    """Steps whose loss must fall, and the hours that they make of the whole training."""
    training, batch = Training(config, place.device, number), config.loop.batch_size
    losses = [training.step() for _ in range(STEPS)]
    if not losses[-1] < losses[0]:
        raise CheckFailed(f"the losses do not fall: {losses}")
    row = {"first_loss": losses[0], "last_loss": losses[-1], **timed(training.step, place.seconds)}
    hours = row["latency_p50_ms"] / 3.6e6 * config.loop.epochs * (PICTURES // batch)
    return row | {"frames_per_s": batch * row["frames_per_s"], "hours_of_the_training": hours}


def compared_steps(place: Place, number: str) -> Row:
    """Steps of preset `unet-s` without dropout; the CPU repeats the first loss in fp32."""
    config = at_size(PRESETS["unet-s"], place.size, dropout=0.0)
    expected, row = Training(config, "cpu", "fp32").step(), steps(place, config, number)
    if not abs(row["first_loss"] / expected - 1) <= APART:
        raise CheckFailed(f"the first loss is {row['first_loss']}, the CPU's is {expected}")
    return {"loss_on_cpu": expected, **row}


def throughput(place: Place, number: str) -> Row:
    """Frames a second of the published network, untrained, by mode."""
    config, device = published(place), torch.device(place.device)
    meta = CheckpointMeta("unet", asdict(config.unet), CAMVID, place.size, place.size * 4 // 3, MEAN, STD)
    tensors = make_network(config, CAMVID).state_dict()
    model = Model("published", place.runs, "", meta, tensors, BUILDERS)
    row = Row()
    for mode in MODES:
        method = MethodOptions(mode=mode, motion=False).resolve(meta)
        backend = torch_backend(model, method, device=device, precision=number)
        row[f"{mode}_frames_per_s"] = rate(place, backend)["frames_per_s"]
    return row


def torch_step(place: Place, number: str) -> Row:
    """Frames a second of an included network with the method of the exported files."""
    model = read_segmenter(place.model)
    method = MethodOptions(mode="vq-dnn", motion=False).resolve(model.meta)
    return whole_step(place, torch_backend(model, method, device=torch.device(place.device), precision=number))
