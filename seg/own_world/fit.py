"""Fits what a network knows of its own world, on frames of its training recordings (`steadyseg calibrate --own-world`).

Means and covariances: all frames but one block per recording, each as it is and as another camera would give it, so that
cameras are not novel. The scale of novelty: the blocks, in the same two ways. The temperature of a frame: frames that were
never trained on, under EXTRA and textures.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.checkpoint import CheckpointMeta
from core.dropout import has_dropout, set_dropout_active
from core.method import Method, settings
from core.novelty.head import NoveltyHead, Readings
from core.novelty.record import SCALE, NoveltyRecord, novelty_tensors
from core.novelty.statistics import LOGIT_STATISTICS, statistic_names
from core.own_world import OwnWorld, binomial_interval
from seg.data.camvid import ImageFolderSplit
from seg.own_world.distances import Looker, fit_distances
from seg.own_world.frames import Frames, Watch, with_cameras
from seg.own_world.temperature import fit_level, fit_temperature_of_frames

CAMERAS = 2
"""Other cameras of each held-back frame."""


@dataclass(frozen=True)
class OwnWorldFit:
    """What goes into a checkpoint."""

    record: dict[str, Any]
    tensors: dict[str, Tensor]


def fit_own_world(
    network: nn.Module,
    meta: CheckpointMeta,
    split: ImageFolderSplit,
    stages: tuple[str, ...],
    device: torch.device,
    methods: Sequence[Method],
    watch: Watch,
) -> OwnWorldFit:
    """With a frame's temperature for mode dnn and for `methods`; dropout is off afterwards.

    InputError for an unknown stage, recordings too short for a block, and features that are no numbers.
    """
    frames, looker = Frames.of(split, meta), Looker(network, meta, stages, device)
    set_dropout_active(network, False)
    pairs = with_cameras(frames, frames.fitted, watch, "class means")
    distances, regions, steps, shrinkage = fit_distances(looker, pairs, len(meta.classes))
    weights = torch.cat([torch.full((len(stages),), 1.0 / len(stages)), torch.zeros(len(LOGIT_STATISTICS))]).double()
    blank = torch.zeros(len(statistic_names(stages)))
    plain = Readings(blank, blank + 1, weights, blank, 0.0, 0.0, 1.0, OwnWorld(()))
    head = NoveltyHead(stages, steps, distances, regions, plain).to(device)
    of_dropout = fit_scale(looker, head, weights, frames, watch, masks=True) if has_dropout(network) else {}
    scale = fit_scale(looker, head, weights, frames, watch, masks=False)
    mean, deviation = (torch.tensor(scale[name], dtype=torch.float64) for name in ("mean", "deviation"))
    temperature = fit_temperature_of_frames(looker, head, frames, mean, deviation, meta, watch)
    own_world = OwnWorld(scale["scores"])
    alarms, pictures = sum(map(own_world.is_strange, own_world.scores)), len(own_world.scores)
    record = NoveltyRecord(
        stages=stages, steps=steps, weights=_rounded(weights), **scale, temperatures={"dnn": temperature},
        dropout=of_dropout,
        about={
            "data": split.root.absolute().name, "frames": len(frames.fitted), "held_back": len(frames.held_back),
            "held_back_pictures": pictures, "untrained": len(frames.untrained), "frame_list_hash": split.frame_hash,
            "shrinkage": {name: round(share, 6) for name, share in shrinkage.items()}, "note": frames.note,
            "alarms": alarms, "alarm_rate_interval": [round(end, 4) for end in binomial_interval(alarms, pictures)],
        },
    )  # fmt: skip
    tensors = novelty_tensors(stages, distances, regions)
    for method in methods:
        if method.mode != "dnn":
            level = round(fit_level(network, meta, record, tensors, frames, method, watch), 6)
            record.temperatures[str(method)] = settings(method) | {"slopes": temperature["slopes"], "level": level}
    set_dropout_active(network, False)
    return OwnWorldFit(asdict(record), tensors)


def fit_scale(
    looker: Looker, head: NoveltyHead, weights: Tensor, frames: Frames, watch: Watch, masks: bool
) -> dict[str, Any]:
    """`core.novelty.record.SCALE`: held-back frames and what other cameras would give of them, in passes with masks or not."""
    set_dropout_active(looker.network, masks)
    torch.manual_seed(0)  # of the masks
    rows, logs = [], []
    for image, _ in with_cameras(frames, frames.held_back, watch, "own world", CAMERAS):
        logits, features, _ = looker(image)
        features = head.thin(features)
        rows.append(head.statistics(features, logits)[0].cpu().double())
        logs.append(head.regions(features[-1]).flatten().cpu())
    table, places = torch.stack(rows), torch.cat(logs).double().numpy()
    mean, deviation = table.mean(0), table.std(0).clamp_min(1e-6)
    median, rare = (round(float(np.quantile(places, share)), 6) for share in (0.5, 0.99))
    scores = tuple(sorted(round(one, 6) for one in (((table - mean) / deviation) @ weights).tolist()))
    found = (_rounded(mean), _rounded(deviation), median, rare, scores)
    return dict(zip(SCALE, found, strict=True))


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(one, 8) for one in values.tolist())
