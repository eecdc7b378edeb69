"""Fits a network's statistics of its training domain, on frames of its training recordings (`steadyseg calibrate
--familiarity`).

Means and covariances are fitted on all frames but one block per recording. Each frame is fitted unchanged and as
another camera would give it, so that another camera is not novel. The scale of familiarity is fitted on the blocks, in
the same two ways. The expected accuracy is fitted on frames outside the training, unchanged and under the changes of
`core/corruptions/tuning.py`, and on pictures that the network is not for.
"""

from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import has_dropout, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.expected import ExpectedAccuracy, layout_cost
from steadyseg.core.familiarity.features import FeatureExtractor, read_statistics
from steadyseg.core.familiarity.fit_expected import Seen, class_costs, fit_expected
from steadyseg.core.familiarity.gaussians import GaussianSums
from steadyseg.core.familiarity.head import FrameStatistics
from steadyseg.core.familiarity.record import FamiliarityRecord, Scale
from steadyseg.core.familiarity.statistics import FrameDistance, pooled, score_weights, subsample, subsampling_step
from steadyseg.core.familiarity.stored import FamiliarityFit, familiarity_tensors
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import enlarge, nearest
from steadyseg.core.stages import named_stages
from steadyseg.seg.data.coarse import is_right, void_of
from steadyseg.seg.data.label_folder import ImageFolderSplit
from steadyseg.seg.familiarity.frames import Frames, Place, Watch, spread, with_cameras

CAMERAS = 2
"""Number of other cameras for each held-out frame."""
LAYOUTS = 200
"""Pictures of the layout costs, and as many of their scale."""


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
    """Fits all statistics, and the expected accuracy at the fitted `temperature`; dropout is off afterwards.

    `in_int8` is the rounded network, where there is one; its frames get scales of their own. InputError for an unknown
    stage, and for features that are not finite.
    """
    network = network.to(memory_format=torch.channels_last)  # a third faster
    extractor = FeatureExtractor(network, meta, stages, device)
    set_dropout_active(network, False)
    fitting = _Fitting(meta, frames, extractor, watch)
    distances, steps, shrinkage = fitting.distances()
    weights = score_weights(len(stages))
    head = FrameStatistics(stages, steps, distances).to(device)
    others = {"dropout": fitting.scale(head, weights, masks=True)} if has_dropout(network) else {}
    scale = fitting.scale(head, weights, masks=False)
    expected = fitting.expected(head, scale, weights, temperature)
    extractor.taps.remove()
    if in_int8:
        in_int8 = in_int8.to(memory_format=torch.channels_last)
        fitting = replace(fitting, extractor=FeatureExtractor(in_int8, meta, stages, device))
        if others:
            others["int8_dropout"] = fitting.scale(head, weights, masks=True)
        others["int8"] = fitting.scale(head, weights, masks=False)
    about = {
        "data": frames.split.root.absolute().name,
        "also": [one.train.root.absolute().name for one in frames.also],
        "frames": len(frames.of_means),
        "held_out": len(frames.of_scale),
        "untrained": len(frames.untrained),
        "other_pictures": len(frames.foreign),
        "frame_list_hash": frames.split.frame_hash,
        "note": frames.note,
        "shrinkage": shrinkage,
    }
    record = FamiliarityRecord.of(head.names, head.steps, scale, weights, about, others, expected)
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
        for image in with_cameras(self.frames.of_means, self.watch, "means"):
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
        pictures = with_cameras(self.frames.of_scale, self.watch, "training domain", CAMERAS)
        rows, logs = zip(*(read_statistics(head, *self.look(image)[:2]) for image in pictures), strict=True)
        return Scale.of(torch.cat(rows), torch.cat(logs, 1)[0], weights)

    def expected(self, head: FrameStatistics, scale: Scale, weights: Tensor, temperature: float) -> ExpectedAccuracy:
        """Fits the expected accuracy (core/expected.py)."""
        mean, deviation = (torch.tensor(column, dtype=torch.float64) for column in (scale.mean, scale.deviation))
        costs = class_costs([self.predicted(*one) for one in self.few(self.frames.of_means)], len(self.meta.classes))
        home = [layout_cost(self.predicted(*one), costs) for one in self.few(self.frames.of_scale)]
        seen = []
        for group, image, label in self.frames.judged(self.watch):
            logits, features, size = self.look(image)
            probs = (enlarge(logits.float(), size) / temperature).softmax(1)[0]
            confidence, predicted = float(probs.amax(0).mean()), probs.argmax(0).cpu().numpy().astype(np.uint8)
            right = 0.0 if label is None else share_right(predicted, label, self.meta.classes.void_id)
            if right is None:
                continue
            score = ((read_statistics(head, logits, features)[0] - mean) / deviation) @ weights
            seen.append(Seen(group, confidence, float(score), layout_cost(predicted, costs), right))
        return fit_expected(seen, costs, home)

    def few(self, pictures: list[Place]) -> list[Place]:
        """Pictures for the layout, spread over all."""
        return [pictures[one] for one in spread(len(pictures), LAYOUTS)]

    def predicted(self, split: ImageFolderSplit, place: int) -> np.ndarray:
        """(h, w) uint8 label map of a picture at the network's size."""
        logits, _, size = self.look(split[place][0])
        return np.asarray(enlarge(logits.float(), size)[0].argmax(0).cpu().numpy().astype(np.uint8))


def share_right(predicted: np.ndarray, label: np.ndarray, void: int) -> float | None:
    """Share of the labelled pixels whose label is, or allows, the predicted class; None without a labelled pixel."""
    small = nearest(torch.from_numpy(label)[None], predicted.shape)[0].numpy()
    kept = small != void_of(small, void)
    return float(is_right(predicted, small)[kept].mean()) if kept.any() else None
