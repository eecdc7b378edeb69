"""Fits a network's statistics of its training domain, on frames of its training recordings (`steadyseg calibrate
--novelty`).

Means and covariances are fitted on all frames but one block per recording, each unchanged and as another camera would
give it, so that another camera is not novel. The scale of novelty is fitted on the blocks, in the same two ways. The
temperature of a frame is fitted on frames that were never trained on, under `TUNING_CORRUPTIONS` and textures.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.dropout import has_dropout, set_dropout_active
from core.errors import InputError
from core.method import Method, draws_dropout, settings
from core.model.checkpoint import CheckpointMeta
from core.novelty.features import FeatureExtractor, read_statistics
from core.novelty.frame_temperature import fit_frame_temperature, shares
from core.novelty.gaussians import GaussianSums
from core.novelty.head import NoveltyHead, NoveltyPredictor
from core.novelty.record import NoveltyFit, NoveltyRecord, Scale, novelty_tensors
from core.novelty.statistics import FrameDistance, RegionDistance, pooled, score_weights, subsample, subsampling_step
from core.preprocess import enlarge, nearest, network_size
from core.stages import named_stages
from seg.calibrate import fit_temperature
from seg.data.camvid import ImageFolderSplit
from seg.evaluate import seed_frames
from seg.novelty.frames import Frames, Watch, tuning_clips, tuning_pictures, with_cameras
from seg.streaming import StreamingSegmenter

CAMERAS = 2
"""Other cameras of each held-out frame."""
GRID = 10
"""Every so many-th pixel of a frame is fitted on."""


def default_stages(network: nn.Module) -> tuple[str, ...]:
    """The deepest stage of the encoder, the first and the last of the decoder (chosen in docs/studies/novelty)."""
    names = list(named_stages(network))
    deepest = [name for name in names if name.startswith("enc")][-1:]
    decoder = [name for name in names if name.startswith("dec") and name != "decoder"] or ["decoder"]
    return tuple(dict.fromkeys([*deepest, decoder[0], decoder[-1]]))


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
    frames = Frames.of(split, meta)
    network = network.to(memory_format=torch.channels_last)  # a third faster
    extractor = FeatureExtractor(network, meta, stages, device)
    set_dropout_active(network, False)
    fitting = _Fitting(meta, frames, extractor, watch)
    distances, regions, steps, shrinkage = fitting.distances()
    weights = score_weights(len(stages))  # what the logits say is in the temperature alone
    head = NoveltyHead.without_scale(stages, steps, distances, regions).to(device)
    of_dropout = fitting.scale(head, weights, masks=True) if has_dropout(network) else None
    scale = fitting.scale(head, weights, masks=False)
    temperature = fitting.temperature(head, scale)
    extractor.taps.remove()
    about = {
        "data": split.root.absolute().name,
        "frames": len(frames.fitted),
        "held_out": len(frames.held_out),
        "untrained": len(frames.untrained),
        "frame_list_hash": split.frame_hash,
        "note": frames.note,
        "shrinkage": shrinkage,
    }
    record = NoveltyRecord.of(head, scale, weights, temperature, about, of_dropout)
    tensors = novelty_tensors(stages, distances, regions)
    for method in methods:
        if method.mode != "dnn":
            level = round(fitting.level(record, tensors, method), 6)
            record.temperatures[str(method)] = settings(method) | {"slopes": temperature["slopes"], "level": level}
    set_dropout_active(network, False)
    return NoveltyFit(asdict(record), tensors)


@dataclass(frozen=True, eq=False)
class _Fitting:
    """The parts of a fit, in the order in which they are called."""

    meta: CheckpointMeta
    frames: Frames
    extractor: FeatureExtractor
    watch: Watch

    def look(self, image: np.ndarray) -> tuple[Tensor, list[Tensor], tuple[int, int]]:
        """(H, W, 3) uint8 -> logits (1, K, h / s, w / s), the features of every stage, and the size (h, w) of the
        network's input."""
        size = network_size(image.shape[0], image.shape[1], self.meta.height)
        return *self.extractor(image[None], size), size

    def distances(self) -> tuple[list[FrameDistance], RegionDistance, tuple[int, ...], dict[str, float]]:
        """Fits the distances of every stage, and of the last stage's regions: means, subsampling step, shrinkage."""
        wholes: list[GaussianSums] = []
        steps: list[int] = []
        within: GaussianSums | None = None
        for image, label in with_cameras(self.frames, self.frames.fitted, self.watch, "class means"):
            _, features, size = self.look(image)
            steps = steps or [subsampling_step(size[0], one) for one in features]
            features = [subsample(one, step).cpu() for one, step in zip(features, steps, strict=True)]
            wholes = wholes or [GaussianSums(one.shape[1], 1) for one in features]
            for total, found in zip(wholes, features, strict=True):
                total.update(pooled(found), torch.zeros(1, dtype=torch.long))
            last = features[-1][0]
            small = nearest(torch.from_numpy(label)[None], size)[0]
            within = within or GaussianSums(len(last), len(self.meta.classes))
            within.update(last.flatten(1).T, label_places(small, last.shape[-2:]).flatten())
        if within is None:
            raise InputError("no frame was given to fit statistics on")
        fits = [total.fit() for total in wholes]
        shrinkage = {name: round(fit.shrinkage, 6) for name, fit in zip(self.extractor.stages, fits, strict=True)}
        return [FrameDistance.of(fit) for fit in fits], RegionDistance.of(within.fit()), tuple(steps), shrinkage

    def scale(self, head: NoveltyHead, weights: Tensor, masks: bool) -> Scale:
        """Fits the scale of novelty on held-out frames and simulated other cameras, with or without dropout masks."""
        set_dropout_active(self.extractor.network, masks)
        torch.manual_seed(0)  # of the masks
        pictures = with_cameras(self.frames, self.frames.held_out, self.watch, "training domain", CAMERAS)
        rows, logs = zip(*(read_statistics(head, *self.look(image)[:2]) for image, _ in pictures), strict=True)
        return Scale.of(torch.cat(rows), torch.cat(logs, 1)[0], weights)

    def temperature(self, head: NoveltyHead, scale: Scale) -> dict[str, Any]:
        """Fits a temperature that follows the frame, for mode dnn, and returns its record."""
        rows, logits, labels, clean = [], [], [], []
        for is_clean, image, label in tuning_pictures(self.frames, self.watch):
            found, features, size = self.look(image)
            small = on_grid(nearest(torch.from_numpy(label)[None], size)[0]).flatten().long()
            kept = small != self.meta.classes.void_id
            if not kept.any():
                continue
            rows.append(read_statistics(head, found, features)[0])
            logits.append(on_grid(enlarge(found, size)[0]).flatten(1).T[kept].cpu())
            labels.append(small[kept])
            clean.append(is_clean)
        return fit_frame_temperature(scale.standardise(torch.cat(rows)), logits, labels, shares(clean)).record()

    def level(self, record: NoveltyRecord, tensors: dict[str, Tensor], method: Method) -> float:
        """Fits the level of the log temperature with the passes and smoothing of `method`; the slopes stay those of
        single frames and passes. It is fitted on untrained frames as clips by a virtual camera, unchanged and under
        `TUNING_CORRUPTIONS`, each frame with noise of its own.
        """
        meta, fit = self.meta, record.temperatures["dnn"]
        head = (record.of_dropout() if draws_dropout(method.mode) else record).head(tensors, fit)
        tempered = TemperedByFrame(NoveltyPredictor(self.extractor.network, head))
        module = StreamingSegmenter(tempered, meta.mean, meta.std, meta.height, replace(method, temperature=1.0))
        clips: Iterator[Any] = seed_frames(tuning_clips(self.frames, meta, self.watch), 0)
        return float(fit["level"]) + math.log(fit_temperature(module, clips, meta.classes).temperature)


class TemperedByFrame(nn.Module):
    """A network whose logits are divided by the frame's temperature."""

    def __init__(self, watched: NoveltyPredictor) -> None:
        super().__init__()
        self.watched = watched
        self.head_stride: int = getattr(watched.network, "head_stride", 1)

    def forward(self, batch: Tensor) -> Tensor:
        logits, novelty = self.watched.forward_with_novelty(batch)
        return logits / novelty.temperature[:, None, None, None]


def on_grid(values: Tensor) -> Tensor:
    """(..., h, w) -> every `GRID`-th row and column, from the middle of the first cells."""
    return values[..., GRID // 2 :: GRID, GRID // 2 :: GRID]


def label_places(label: Tensor, size: torch.Size) -> Tensor:
    """Subsamples a label (h, w) to a subsampled stage's size (h', w'): the middle label of each position."""
    rows, columns = (
        (torch.arange(count) * step + step // 2).clamp_max(length - 1)
        for count, length in zip(size, label.shape, strict=True)
        for step in [max(1, round(length / count))]
    )
    return label[rows[:, None], columns[None]]
