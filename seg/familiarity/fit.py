"""Fits a network's statistics of its training domain, on frames of its training recordings (`steadyseg calibrate
--familiarity`).

Means and covariances are fitted on all frames but one block per recording. Each frame is fitted unchanged and as
another camera would give it, so that another camera is not novel. The scale of familiarity is fitted on the blocks, in
the same two ways. The temperature of novel frames is fitted on frames outside the training, under the changes of
`core/corruptions/tuning.py`.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import has_dropout, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.features import FeatureExtractor, read_statistics
from steadyseg.core.familiarity.frame_temperature import fit_warmth
from steadyseg.core.familiarity.gaussians import GaussianSums
from steadyseg.core.familiarity.head import FrameStatistics
from steadyseg.core.familiarity.record import FamiliarityRecord, Scale
from steadyseg.core.familiarity.statistics import FrameDistance, pooled, score_weights, subsample, subsampling_step
from steadyseg.core.familiarity.stored import FamiliarityFit, familiarity_tensors
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import enlarge, nearest
from steadyseg.core.stages import named_stages
from steadyseg.seg.data.coarse import single_ids
from steadyseg.seg.familiarity.frames import Frames, Watch, tuning_pictures, with_cameras

CAMERAS = 2
"""Number of other cameras for each held-out frame."""
GRID = 10
"""Step in pixels between the fitted rows and columns of a frame."""


def default_stages(network: nn.Module) -> tuple[str, ...]:
    """The deepest stage of the encoder, the first and the last of the decoder (chosen in docs/records/familiarity); all
    stages if none has such a name."""
    names = list(named_stages(network))
    deepest = [name for name in names if name.startswith("enc")][-1:]
    decoder = [name for name in names if name.startswith("dec") and name != "decoder"] or ["decoder"]
    return tuple(dict.fromkeys([*deepest, decoder[0], decoder[-1]] if {*deepest, *decoder} & {*names} else names))


def fit_statistics(
    network: nn.Module,
    meta: CheckpointMeta,
    frames: Frames,
    stages: tuple[str, ...],
    device: torch.device,
    temperature: float,
    watch: Watch,
    in_int8: nn.Module | None = None,
) -> FamiliarityFit:
    """Fits all statistics, and how novel frames raise the fitted `temperature`; dropout is off afterwards.

    `in_int8` is the rounded network, where there is one; its frames get scales of their own. InputError for an unknown
    stage, and for features that are not finite.
    """
    network = network.to(memory_format=torch.channels_last)  # a third faster
    extractor = FeatureExtractor(network, meta, stages, device)
    set_dropout_active(network, False)
    fitting = _Fitting(meta, frames, extractor, watch)
    distances, steps, shrinkage = fitting.distances()
    weights = score_weights(len(stages))  # the logits' statistics change the temperature alone
    head = FrameStatistics(stages, steps, distances).to(device)
    others = {"dropout": fitting.scale(head, weights, masks=True)} if has_dropout(network) else {}
    scale = fitting.scale(head, weights, masks=False)
    warming = fitting.warming(head, scale, weights, temperature)
    extractor.taps.remove()
    if in_int8:
        in_int8 = in_int8.to(memory_format=torch.channels_last)
        fitting = replace(fitting, extractor=FeatureExtractor(in_int8, meta, stages, device))
        if others:
            others["int8_dropout"] = fitting.scale(head, weights, masks=True)
        others["int8"] = fitting.scale(head, weights, masks=False)
    about = {
        "data": frames.split.root.absolute().name,
        "frames": len(frames.fitted),
        "held_out": len(frames.held_out),
        "untrained": len(frames.untrained),
        "frame_list_hash": frames.split.frame_hash,
        "note": frames.note,
        "shrinkage": shrinkage,
    }
    record = FamiliarityRecord.of(head.names, head.steps, scale, weights, warming, about, others)
    return FamiliarityFit(asdict(record), familiarity_tensors(stages, distances))


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
        fixed: tuple[int, int] | None = getattr(self.extractor.network, "fixed_size", None)
        size = fixed or network_size(image.shape[0], image.shape[1], self.meta.height)
        return *self.extractor(image[None], size), size

    def distances(self) -> tuple[list[FrameDistance], tuple[int, ...], dict[str, float]]:
        """Fits the distances of every stage: means, subsampling step, shrinkage."""
        wholes: list[GaussianSums] = []
        steps: list[int] = []
        for image, _ in with_cameras(self.frames, self.frames.fitted, self.watch, "means"):
            _, features, size = self.look(image)
            steps = steps or [subsampling_step(size[0], one) for one in features]
            means = [pooled(subsample(one, step)).cpu() for one, step in zip(features, steps, strict=True)]
            wholes = wholes or [GaussianSums(one.shape[1], 1) for one in means]
            for total, mean in zip(wholes, means, strict=True):
                total.update(mean, torch.zeros(1, dtype=torch.long))
        if not wholes:
            raise InputError("no frame was given to fit statistics on")
        fits = [total.fit() for total in wholes]
        shrinkage = {name: round(fit.shrinkage, 6) for name, fit in zip(self.extractor.stages, fits, strict=True)}
        return [FrameDistance.of(fit) for fit in fits], tuple(steps), shrinkage

    def scale(self, head: FrameStatistics, weights: Tensor, masks: bool) -> Scale:
        """Fits the scale on held-out frames and simulated other cameras, with or without dropout masks."""
        set_dropout_active(self.extractor.network, masks)
        torch.manual_seed(0)  # for the dropout masks
        pictures = with_cameras(self.frames, self.frames.held_out, self.watch, "training domain", CAMERAS)
        rows, logs = zip(*(read_statistics(head, *self.look(image)[:2]) for image, _ in pictures), strict=True)
        return Scale.of(torch.cat(rows), torch.cat(logs, 1)[0], weights)

    def warming(self, head: FrameStatistics, scale: Scale, weights: Tensor, temperature: float) -> dict[str, Any]:
        """Fits the warmth of novel frames, above the fitted temperature, and returns its record."""
        rows, logits, labels, clean, void = [], [], [], [], self.meta.classes.void_id
        for is_clean, image, label in tuning_pictures(self.frames, self.watch):
            found, features, size = self.look(image)
            small = on_grid(nearest(torch.from_numpy(single_ids(label, void))[None], size)[0]).flatten().long()
            kept = small != void
            if not kept.any():
                continue
            rows.append(read_statistics(head, found, features)[0])
            logits.append(on_grid(enlarge(found, size)[0]).flatten(1).T[kept].cpu())
            labels.append(small[kept])
            clean.append(is_clean)
        return fit_warmth(*scale.excess(torch.cat(rows), weights), logits, labels, clean, temperature).record()


def on_grid(values: Tensor) -> Tensor:
    """(..., h, w) -> every `GRID`-th row and column, from the middle of the first cells."""
    return values[..., GRID // 2 :: GRID, GRID // 2 :: GRID]
