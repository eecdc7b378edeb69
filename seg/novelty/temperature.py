"""The temperature of a frame: slopes on single frames, and a level for frames that are smoothed over time."""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn

from core.method import Method, draws_dropout
from core.model.checkpoint import CheckpointMeta
from core.novelty.frame_temperature import fit_frame_temperature, shares
from core.novelty.head import NoveltyHead, NoveltyPredictor
from core.novelty.record import NoveltyRecord, Scale
from core.preprocess import enlarge, nearest
from seg.calibrate import fit_temperature
from seg.evaluate import seed_frames
from seg.novelty.distances import FeatureExtractor
from seg.novelty.frames import Frames, Watch, tuning_clips, tuning_pictures
from seg.streaming import StreamingSegmenter

GRID = 10
"""Every so many-th pixel of a frame is fitted on."""


def fit_temperature_of_frames(
    looker: FeatureExtractor,
    head: NoveltyHead,
    frames: Frames,
    scale: Scale,
    meta: CheckpointMeta,
    watch: Watch,
) -> dict[str, Any]:
    """Fits a temperature that follows the frame, for mode dnn, and returns its record."""
    rows, logits, labels, clean = [], [], [], []
    for is_clean, image, label in tuning_pictures(frames, watch):
        found, features, size = looker(image)
        row = head.statistics(head.subsample(features), found)
        small = nearest(torch.from_numpy(label)[None], size)[0][GRID // 2 :: GRID, GRID // 2 :: GRID].flatten().long()
        kept = small != meta.classes.void_id
        if not kept.any():
            continue
        found = enlarge(found, size)
        rows.append(row[0].cpu().double())
        logits.append(found[0, :, GRID // 2 :: GRID, GRID // 2 :: GRID].flatten(1).T[kept].cpu())
        labels.append(small[kept])
        clean.append(is_clean)
    return fit_frame_temperature(scale.standardise(torch.stack(rows)), logits, labels, shares(clean)).record()


def fit_level(
    network: nn.Module,
    meta: CheckpointMeta,
    record: NoveltyRecord,
    tensors: dict[str, Tensor],
    frames: Frames,
    method: Method,
    watch: Watch,
) -> float:
    """Fits the level of the log temperature with the passes and smoothing of `method`; the slopes stay those of single
    frames and passes. It is fitted on untrained frames as clips by a virtual camera, unchanged and under
    `TUNING_CORRUPTIONS`, each frame with noise of its own.
    """
    fit = record.temperatures["dnn"]
    head = (record.of_dropout() if draws_dropout(method.mode) else record).head(tensors, fit)
    tempered = TemperedByFrame(NoveltyPredictor(network, head))
    module = StreamingSegmenter(
        tempered, meta.mean, meta.std, meta.height, dataclasses.replace(method, temperature=1.0)
    )
    clips = seed_frames(tuning_clips(frames, meta, watch), 0)
    ratio = fit_temperature(module, clips, meta.classes).temperature
    return float(fit["level"]) + math.log(ratio)


class TemperedByFrame(nn.Module):
    """A network whose logits are divided by the frame's temperature."""

    def __init__(self, watched: NoveltyPredictor) -> None:
        super().__init__()
        self.watched = watched
        self.head_stride: int = getattr(watched.network, "head_stride", 1)

    def forward(self, batch: Tensor) -> Tensor:
        logits, novelty = self.watched.forward_with_novelty(batch)
        return logits / novelty.temperature[:, None, None, None]
