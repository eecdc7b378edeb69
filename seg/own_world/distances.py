"""A network's stages, and how far features lie from those of training frames: fitted in one pass."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from core.checkpoint import CheckpointMeta
from core.errors import InputError
from core.novelty.gaussians import GaussianSums
from core.novelty.statistics import STRIDE, FrameDistance, RegionDistance
from core.preprocess import Normalize, nearest, network_size, resize
from core.taps import FeatureTaps, tap_points
from seg.own_world.frames import Labelled


class Looker:
    """Runs a network and reads its stages."""

    def __init__(self, network: nn.Module, meta: CheckpointMeta, stages: tuple[str, ...], device: torch.device) -> None:
        self.network = network.to(device).to(memory_format=torch.channels_last).eval()  # a third faster
        self.stages, self.device = stages, device
        self.taps = FeatureTaps(network, stages)
        self.normalize, self.height = Normalize(meta.mean, meta.std).to(device), meta.height

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> tuple[Tensor, list[Tensor], tuple[int, int]]:
        """(H, W, 3) uint8 -> logits (1, K, h / s, w / s), the features of every stage, and (h, w) of what the network saw."""
        pixels = torch.from_numpy(np.ascontiguousarray(image)).to(self.device)[None].permute(0, 3, 1, 2)
        size = network_size(image.shape[0], image.shape[1], self.height)
        logits = self.network(self.normalize(resize(pixels, size)))
        return logits, self.taps.take(), size


def default_stages(network: nn.Module) -> tuple[str, ...]:
    """The deepest of the encoder, the decoder's first and its last: chosen on held-back frames (docs/novelty.md)."""
    names = list(tap_points(network))
    deepest = [name for name in names if name.startswith("enc")][-1:]
    decoder = [name for name in names if name.startswith("dec") and name != "decoder"] or ["decoder"]
    return tuple(dict.fromkeys([*deepest, decoder[0], decoder[-1]]))


def fit_distances(
    looker: Looker, frames: Iterable[Labelled], num_classes: int
) -> tuple[list[FrameDistance], RegionDistance, dict[str, float]]:
    """Mean features of every stage, and the last one's class means, in one pass; and the means' shrinkage.

    Memory is O(C^2), whatever the number of frames. InputError for none.
    """
    wholes: list[GaussianSums] = []
    within: GaussianSums | None = None
    step = 1
    for image, label in frames:
        _, features, size = looker(image)
        last = features[-1]
        wholes = wholes or [GaussianSums(one.shape[1], 1) for one in features]
        for total, found in zip(wholes, features, strict=True):
            mean = found.mean((2, 3)) if found.ndim == 4 else found
            total.update(mean.cpu(), torch.zeros(1, dtype=torch.long))
        step = max(1, STRIDE // max(1, round(size[0] / last.shape[-2])))
        thin = last[0, :, ::step, ::step].cpu()
        small = nearest(torch.from_numpy(label)[None], size)[0]
        within = within or GaussianSums(len(thin), num_classes)
        within.update(thin.flatten(1).T, label_places(small, thin.shape[-2:]).flatten())
    if within is None:
        raise InputError("no frame was given to fit statistics on")
    fits = [total.fit() for total in wholes]
    shrinkage = {name: fit.shrinkage for name, fit in zip(looker.stages, fits, strict=True)}
    return [FrameDistance.of(fit) for fit in fits], RegionDistance.of(within.fit(), step), shrinkage


def label_places(label: Tensor, size: torch.Size) -> Tensor:
    """(h, w) label at the places of a thinned stage (h', w'), the first of which lies in the corner."""
    rows, columns = (
        (torch.arange(count) * step + step // 2).clamp_max(length - 1)
        for count, length in zip(size, label.shape, strict=True)
        for step in [max(1, round(length / count))]
    )
    return label[rows[:, None], columns[None]]
