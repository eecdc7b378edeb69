"""Fits a network's statistics of its training domain, on frames of its training recordings (`steadyseg calibrate
--novelty`).

Means and covariances are fitted on all frames but one block per recording, each unchanged and as another camera would
give it, so that another camera is not novel. The scale of novelty is fitted on the blocks, in the same two ways. The
temperature of a frame is fitted on frames that were never trained on, under `TUNING_CORRUPTIONS` and textures.
"""

from collections.abc import Sequence
from dataclasses import asdict

import torch
from torch import Tensor, nn

from core.dropout import has_dropout, set_dropout_active
from core.method import Method, settings
from core.model.checkpoint import CheckpointMeta
from core.novelty.head import NoveltyHead
from core.novelty.record import NoveltyFit, NoveltyRecord, Scale, novelty_tensors, rounded
from core.novelty.statistics import score_weights
from seg.data.camvid import ImageFolderSplit
from seg.novelty.distances import FeatureExtractor, fit_distances
from seg.novelty.frames import Frames, Watch, with_cameras
from seg.novelty.temperature import fit_level, fit_temperature_of_frames

CAMERAS = 2
"""Other cameras of each held-back frame."""


def fit_statistics(
    network: nn.Module,
    meta: CheckpointMeta,
    split: ImageFolderSplit,
    stages: tuple[str, ...],
    device: torch.device,
    methods: Sequence[Method],
    watch: Watch,
) -> NoveltyFit:
    """Fits all statistics, and the temperature of a frame for mode dnn and for `methods`; dropout is off afterwards.

    InputError for an unknown stage, recordings too short for a block, and features that are not finite.
    """
    frames, looker = Frames.of(split, meta), FeatureExtractor(network, meta, stages, device)
    set_dropout_active(network, False)
    pairs = with_cameras(frames, frames.fitted, watch, "class means")
    distances, regions, steps, shrinkage = fit_distances(looker, pairs, len(meta.classes))
    weights = score_weights(len(stages))  # what the logits say is in the temperature alone
    head = NoveltyHead.without_scale(stages, steps, distances, regions).to(device)
    of_dropout = asdict(fit_scale(looker, head, weights, frames, watch, masks=True)) if has_dropout(network) else {}
    scale = fit_scale(looker, head, weights, frames, watch, masks=False)
    temperature = fit_temperature_of_frames(looker, head, frames, scale, meta, watch)
    record = NoveltyRecord(
        stages=stages,
        steps=steps,
        weights=rounded(weights),
        **asdict(scale),
        temperatures={"dnn": temperature},
        dropout=of_dropout,
        about={
            "data": split.root.absolute().name,
            "frames": len(frames.fitted),
            "held_back": len(frames.held_back),
            "held_back_pictures": len(scale.scores),
            "untrained": len(frames.untrained),
            "frame_list_hash": split.frame_hash,
            "note": frames.note,
            "shrinkage": {name: round(share, 6) for name, share in shrinkage.items()},
            **scale.alarms(),
        },
    )
    tensors = novelty_tensors(stages, distances, regions)
    for method in methods:
        if method.mode != "dnn":
            level = round(fit_level(network, meta, record, tensors, frames, method, watch), 6)
            record.temperatures[str(method)] = settings(method) | {"slopes": temperature["slopes"], "level": level}
    set_dropout_active(network, False)
    return NoveltyFit(asdict(record), tensors)


def fit_scale(
    looker: FeatureExtractor, head: NoveltyHead, weights: Tensor, frames: Frames, watch: Watch, masks: bool
) -> Scale:
    """Fits the scale of novelty on held-out frames and simulated other cameras, in passes with or without dropout
    masks."""
    set_dropout_active(looker.network, masks)
    torch.manual_seed(0)  # of the masks
    rows, logs = [], []
    for image, _ in with_cameras(frames, frames.held_back, watch, "training domain", CAMERAS):
        logits, features, _ = looker(image)
        features = head.subsample(features)
        rows.append(head.statistics(features, logits)[0].cpu().double())
        logs.append(head.regions(features[-1]).flatten().cpu())
    return Scale.of(torch.stack(rows), torch.cat(logs), weights)
