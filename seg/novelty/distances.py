"""Distances of a network's features from those of training frames, fitted in one pass."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import InputError
from core.model.checkpoint import CheckpointMeta
from core.novelty.gaussians import GaussianSums
from core.novelty.statistics import FrameDistance, RegionDistance, pooled, subsample, subsampling_step
from core.preprocess import Normalize, nearest, network_size, resize
from core.stages import StageFeatures, named_stages
from seg.novelty.frames import Labelled


class FeatureExtractor:
    """Runs a network and returns its logits and the features of its stages."""

    def __init__(self, network: nn.Module, meta: CheckpointMeta, stages: tuple[str, ...], device: torch.device) -> None:
        self.network = network.to(device).to(memory_format=torch.channels_last).eval()  # a third faster
        self.stages, self.device = stages, device
        self.taps = StageFeatures(network, stages)
        self.normalize, self.height = Normalize(meta.mean, meta.std).to(device), meta.height

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> tuple[Tensor, list[Tensor], tuple[int, int]]:
        """(H, W, 3) uint8 -> logits (1, K, h / s, w / s), the features of every stage, and the size (h, w) of the
        network's input."""
        pixels = torch.from_numpy(np.ascontiguousarray(image)).to(self.device)[None].permute(0, 3, 1, 2)
        size = network_size(image.shape[0], image.shape[1], self.height)
        logits = self.network(self.normalize(resize(pixels, size)))
        return logits, self.taps.take(), size


def default_stages(network: nn.Module) -> tuple[str, ...]:
    """The deepest stage of the encoder, the first and the last of the decoder (chosen in docs/studies/novelty)."""
    names = list(named_stages(network))
    deepest = [name for name in names if name.startswith("enc")][-1:]
    decoder = [name for name in names if name.startswith("dec") and name != "decoder"] or ["decoder"]
    return tuple(dict.fromkeys([*deepest, decoder[0], decoder[-1]]))


def fit_distances(
    looker: FeatureExtractor, frames: Iterable[Labelled], num_classes: int
) -> tuple[list[FrameDistance], RegionDistance, tuple[int, ...], dict[str, float]]:
    """Fits the distances of every stage: mean features, subsampling step and shrinkage; for the last stage the
    region distance too."""
    wholes: list[GaussianSums] = []
    steps: list[int] = []
    within: GaussianSums | None = None
    for image, label in frames:
        _, features, size = looker(image)
        steps = steps or [subsampling_step(size[0], one) for one in features]
        features = [subsample(one, step).cpu() for one, step in zip(features, steps, strict=True)]
        wholes = wholes or [GaussianSums(one.shape[1], 1) for one in features]
        for total, found in zip(wholes, features, strict=True):
            total.update(pooled(found), torch.zeros(1, dtype=torch.long))
        last = features[-1][0]
        small = nearest(torch.from_numpy(label)[None], size)[0]
        within = within or GaussianSums(len(last), num_classes)
        within.update(last.flatten(1).T, label_places(small, last.shape[-2:]).flatten())
    if within is None:
        raise InputError("no frame was given to fit statistics on")
    fits = [total.fit() for total in wholes]
    shrinkage = {name: fit.shrinkage for name, fit in zip(looker.stages, fits, strict=True)}
    return [FrameDistance.of(fit) for fit in fits], RegionDistance.of(within.fit()), tuple(steps), shrinkage


def label_places(label: Tensor, size: torch.Size) -> Tensor:
    """Subsamples a label (h, w) to the size (h', w') of a subsampled stage: the middle one of the labels of each
    position."""
    rows, columns = (
        (torch.arange(count) * step + step // 2).clamp_max(length - 1)
        for count, length in zip(size, label.shape, strict=True)
        for step in [max(1, round(length / count))]
    )
    return label[rows[:, None], columns[None]]
