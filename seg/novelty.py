"""A network's own world: opened from its checkpoint for a method, and fitted on the frames that it was trained on."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from core.checkpoint import CheckpointMeta, load_checkpoint
from core.errors import InputError
from core.method import Method, draws_dropout, fit_of
from core.novelty.gaussians import GaussianSums
from core.novelty.head import NoveltyHead
from core.novelty.record import NoveltyRecord
from core.novelty.statistics import STRIDE, StageStatistics
from core.preprocess import Normalize, enlarge, nearest, network_size, resize
from core.taps import FeatureTaps
from seg.pretrained import find_checkpoint


def open_head(model: str | Path, meta: CheckpointMeta, method: Method) -> NoveltyHead | None:
    """What tells of whole frames with this method; None where the checkpoint has no statistics, or none for passes like these.

    The statistics are those of one pass without dropout: masks move features too.
    """
    if not meta.novelty or draws_dropout(method.mode):
        return None
    path = find_checkpoint(model)
    record = NoveltyRecord.read(meta.novelty)
    return record.head(load_checkpoint(path)[0], fit_of(record.temperatures, method) if method.adaptive else None)


@dataclass(frozen=True, eq=False)
class Look:
    """What the network makes of one picture."""

    logits: Tensor
    """(1, K, h, w) at the network's size."""
    features: list[Tensor]
    """Of each stage, (1, C, h', w'), every `steps`-th pixel of it."""
    steps: tuple[int, ...]
    size: tuple[int, int]


class Looker:
    """Runs a network and reads its stages; the features are thinned to `STRIDE`."""

    def __init__(self, network: nn.Module, meta: CheckpointMeta, stages: tuple[str, ...], device: torch.device) -> None:
        self.network, self.stages, self.device = network.to(device).eval(), stages, device
        self.taps = FeatureTaps(network, stages)
        self.normalize, self.height = Normalize(meta.mean, meta.std).to(device), meta.height

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> Look:
        """image: (H, W, 3) uint8 RGB."""
        pixels = torch.from_numpy(np.ascontiguousarray(image)).to(self.device)[None].permute(0, 3, 1, 2)
        size = network_size(*image.shape[:2], self.height)
        logits = enlarge(self.network(self.normalize(resize(pixels, size))), size)
        found = self.taps.take()
        steps = tuple(max(1, STRIDE // max(1, round(size[0] / one.shape[-2]))) for one in found)
        return Look(logits, [one[..., ::step, ::step] for one, step in zip(found, steps, strict=True)], steps, size)


def fit_stages(
    looker: Looker, frames: Iterable[tuple[np.ndarray, np.ndarray]], num_classes: int
) -> tuple[list[StageStatistics], dict[str, float]]:
    """Class means and covariances of every stage in one pass over (image, label) pairs, and their shrinkage by stage.

    Memory is O(C^2) and one mean feature a frame, whatever the number of frames. InputError for none.
    """
    sums: list[GaussianSums] = []
    wholes: list[list[Tensor]] = [[] for _ in looker.stages]
    steps: tuple[int, ...] = ()
    for image, label in frames:
        look = looker(image)
        steps = look.steps
        small = nearest(torch.from_numpy(label)[None], look.size)[0]
        sums = sums or [GaussianSums(one.shape[1], num_classes) for one in look.features]
        for total, whole, features in zip(sums, wholes, look.features, strict=True):
            flat = features[0].flatten(1).T.cpu()
            total.update(flat, label_places(small, features.shape[-2:]).flatten())
            whole.append(flat.mean(0))
    if not sums:
        raise InputError("no frame was given to fit statistics on")
    stages, shrinkage = [], {}
    for name, total, whole, step in zip(looker.stages, sums, wholes, steps, strict=True):
        within = total.fit()
        pooled = GaussianSums(len(within.mean), 1)
        for one in whole:
            pooled.update(one[None], torch.zeros(1, dtype=torch.long))
        frames_of = pooled.fit()
        stages.append(StageStatistics.of(within, frames_of, step))
        shrinkage |= {f"{name}.distance": within.shrinkage, f"{name}.pooled": frames_of.shrinkage}
    return stages, shrinkage


def label_places(label: Tensor, size: torch.Size) -> Tensor:
    """(h, w) label at the places of a thinned stage (h', w'), the first of which lies in the corner."""
    rows, columns = (
        (torch.arange(count) * step + step // 2).clamp_max(length - 1)
        for count, length in zip(size, label.shape, strict=True)
        for step in [max(1, round(length / count))]
    )
    return label[rows[:, None], columns[None]]
