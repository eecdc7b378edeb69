"""The temperature of a frame: slopes on single frames, and a level for frames that are smoothed over time."""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn

from core.checkpoint import CheckpointMeta
from core.method import Method, draws_dropout
from core.novelty.frame_temperature import fit_frame_temperature
from core.novelty.head import NoveltyHead, WatchedPasses
from core.novelty.record import NoveltyRecord
from core.preprocess import enlarge, nearest
from seg.calibrate import fit_temperature
from seg.evaluate import seed_frames
from seg.own_world.distances import Looker
from seg.own_world.frames import Frames, Watch, tuning_clips, tuning_pictures
from seg.streaming import StreamingSegmenter

GRID = 10
"""Every so many-th pixel of a frame is fitted on."""
CLEAN_SHARE = 0.5
"""Of the weight in the temperature's fit that frames as they are have together."""


def fit_temperature_of_frames(
    looker: Looker,
    head: NoveltyHead,
    frames: Frames,
    mean: Tensor,
    deviation: Tensor,
    meta: CheckpointMeta,
    watch: Watch,
) -> dict[str, Any]:
    """What goes into the record of mode dnn."""
    rows, logits, labels, clean = [], [], [], []
    for is_clean, image, label in tuning_pictures(frames, watch):
        found, features, size = looker(image)
        row = head.statistics(head.thin(features), found)
        small = nearest(torch.from_numpy(label)[None], size)[0][GRID // 2 :: GRID, GRID // 2 :: GRID].flatten().long()
        kept = small != meta.classes.void_id
        if not kept.any():
            continue
        found = enlarge(found, size)
        rows.append(row[0].cpu().double())
        logits.append(found[0, :, GRID // 2 :: GRID, GRID // 2 :: GRID].flatten(1).T[kept].cpu())
        labels.append(small[kept])
        clean.append(is_clean)
    is_clean_one = torch.tensor(clean, dtype=torch.float64)
    weights = (
        CLEAN_SHARE * is_clean_one / is_clean_one.sum()
        + (1 - CLEAN_SHARE) * (1 - is_clean_one) / (1 - is_clean_one).sum()
    )
    fit = fit_frame_temperature((torch.stack(rows) - mean) / deviation, logits, labels, weights)
    return {
        "mode": "dnn", "samples": 1, "tau": None, "window": None, "motion": False,
        "slopes": [round(one, 6) for one in fit.slopes], "level": round(fit.level, 6), "pictures": len(rows),
        "nll_one_temperature": round(fit.nll_one, 6), "nll": round(fit.nll, 6),
    }  # fmt: skip


def fit_level(
    network: nn.Module,
    meta: CheckpointMeta,
    record: NoveltyRecord,
    tensors: dict[str, Tensor],
    frames: Frames,
    method: Method,
    watch: Watch,
) -> float:
    """The level of the log temperature with passes and smoothing of `method`; the slopes are those of one frame and pass.

    Fitted on the untrained frames as clips by a virtual camera, as they are and under EXTRA, each frame with noise of its own.
    """
    fit = record.temperatures["dnn"]
    head = (record.of_dropout() if draws_dropout(method.mode) else record).head(tensors, fit)
    tempered = TemperedByFrame(WatchedPasses(network, head))
    module = StreamingSegmenter(
        tempered, meta.mean, meta.std, meta.height, dataclasses.replace(method, temperature=1.0)
    )
    clips = seed_frames(tuning_clips(frames, meta, watch), 0)
    ratio = fit_temperature(module, clips, meta.classes).temperature
    return float(fit["level"]) + math.log(ratio)


class TemperedByFrame(nn.Module):
    """Logits divided by the frame's temperature, as a network."""

    def __init__(self, watched: WatchedPasses) -> None:
        super().__init__()
        self.watched = watched
        self.head_stride: int = getattr(watched.network, "head_stride", 1)

    def forward(self, batch: Tensor) -> Tensor:
        logits, sight = self.watched.look(batch)
        return logits / sight.temperature[:, None, None, None]
