"""Fits what a network knows of its own world, on frames of its training recordings (`steadyseg calibrate --own-world`).

Class means and covariances: all frames but one block per recording, each as it is and as another camera would give it, so that
cameras are not novel. The scale of novelty: the blocks, in the same two ways. The temperature of a frame: frames that were
never trained on, under the corruptions called EXTRA and textures; never under those that benchmarks report.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.checkpoint import CheckpointMeta
from core.errors import InputError
from core.frame import Frame
from core.method import Method, is_temporal, settings
from core.novelty.frame_temperature import fit_frame_temperature
from core.novelty.gaussians import GaussianSums
from core.novelty.head import NoveltyHead, Readings, WatchedPass
from core.novelty.record import NoveltyRecord, novelty_tensors
from core.novelty.statistics import LOGIT_STATISTICS, STRIDE, FrameDistance, RegionDistance, statistic_names
from core.own_world import OwnWorld, binomial_interval
from core.preprocess import Normalize, enlarge, nearest, network_size, resize
from core.robustness.camera_changes import random_camera
from core.robustness.corruptions import EXTRA, corrupt
from core.robustness.textures import under_texture
from core.taps import FeatureTaps, tap_points
from seg.calibrate import fit_temperature
from seg.data.blocks import hold_back_blocks
from seg.data.camvid import ImageFolderSplit
from seg.data.moving_stills import CLIP_FRAMES, moving_stills
from seg.streaming import StreamingSegmenter
from seg.train import split_held_back

CAMERAS = 2
"""Other cameras of each held-back frame."""
SEVERITIES = (1, 3, 5)
GRID = 10
"""Every so many-th pixel of a frame is fitted on."""
CLEAN_SHARE = 0.5
"""Of the weight in the temperature's fit that frames as they are have together."""
Labelled = tuple[np.ndarray, np.ndarray]
"""(H, W, 3) uint8 RGB, (H, W) uint8 class ids."""
Watch = Callable[[Iterable[Any], str], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class Frames:
    """Where frames for each purpose lie in the split of training images."""

    split: ImageFolderSplit
    fitted: tuple[int, ...]
    held_back: tuple[int, ...]
    untrained: tuple[int, ...]
    """Never trained on; the blocks where the training's record does not tell."""
    note: str
    """Which of them the network was trained on."""

    @classmethod
    def of(cls, split: ImageFolderSplit, meta: CheckpointMeta) -> "Frames":
        blocks = hold_back_blocks([example.name for example in split.examples])
        share = meta.training.get("config", {}).get("hold_back", 0.0)
        _, kept_back = split_held_back(len(split), share)
        if not kept_back or meta.training.get("held_back") != len(kept_back):
            note = "the record of the training does not tell which frames it held back, so the temperature is fitted on blocks"
            return cls(split, blocks.fitted, blocks.held_back, blocks.held_back, note)
        fitted = tuple(sorted(set(blocks.fitted) - set(kept_back)))
        trained = len(set(blocks.held_back) - set(kept_back))
        note = f"{trained} of the {len(blocks.held_back)} frames of the blocks were trained on" if trained else ""
        return cls(split, fitted, blocks.held_back, tuple(kept_back), note)

    def read(self, places: Iterable[int]) -> Iterator[tuple[int, Labelled]]:
        return ((place, self.split[place]) for place in places)


@dataclass(frozen=True)
class OwnWorldFit:
    """What goes into a checkpoint."""

    record: dict[str, Any]
    tensors: dict[str, Tensor]


class Looker:
    """Runs a network and reads its stages."""

    def __init__(self, network: nn.Module, meta: CheckpointMeta, stages: tuple[str, ...], device: torch.device) -> None:
        self.network, self.stages, self.device = network.to(device).eval(), stages, device
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
    """The deepest stage of the encoder, the decoder's first and its last: chosen on held-back frames (docs/novelty.md)."""
    names = list(tap_points(network))
    deepest = [name for name in names if name.startswith("enc")][-1:]
    decoder = [name for name in names if name.startswith("dec") and name != "decoder"] or ["decoder"]
    return (*deepest, decoder[0], decoder[-1])


def fit_own_world(
    network: nn.Module,
    meta: CheckpointMeta,
    split: ImageFolderSplit,
    stages: tuple[str, ...],
    device: torch.device,
    method: Method,
    watch: Watch,
) -> OwnWorldFit:
    """With a frame's temperature for mode dnn and for `method`, which has one pass without dropout; dropout is off.

    InputError for an unknown stage, recordings too short for a block, and features that are no numbers.
    """
    frames, looker = Frames.of(split, meta), Looker(network, meta, stages, device)
    *scored, region_stage = stages
    pairs = with_cameras(frames, frames.fitted, watch, "class means")
    distances, regions, shrinkage = fit_distances(looker, pairs, len(meta.classes))
    blank = torch.zeros(len(statistic_names(tuple(scored))))
    plain = Readings(blank, blank + 1, blank, blank, 0.0, 0.0, 1.0)
    head = NoveltyHead(stages, distances, regions, plain).to(device)
    rows, logs = [], []
    for image, _ in with_cameras(frames, frames.held_back, watch, "own world", CAMERAS):
        logits, features, _ = looker(image)
        rows.append(head.statistics(features, logits)[0].cpu().double())
        logs.append(regions(features[-1]).flatten().cpu())
    table = torch.stack(rows)
    mean, deviation = table.mean(0), table.std(0).clamp_min(1e-6)
    weights = torch.cat([torch.full((len(scored),), 1.0 / len(scored)), torch.zeros(len(LOGIT_STATISTICS))]).double()
    own_world = OwnWorld(tuple(sorted(round(one, 6) for one in (((table - mean) / deviation) @ weights).tolist())))
    temperature = fit_temperature_of_frames(looker, head, frames, mean, deviation, meta, watch)
    places = torch.cat(logs).double()
    median, rare = (round(float(np.quantile(places.numpy(), share)), 6) for share in (0.5, 0.99))
    alarms = sum(own_world.is_strange(one) for one in own_world.scores)
    record = NoveltyRecord(
        tuple(scored), region_stage, regions.whiten.stride[0], _rounded(mean), _rounded(deviation), _rounded(weights),
        median, rare, own_world.scores,
        {"dnn": temperature},
        {
            "data": split.root.absolute().name, "frames": len(frames.fitted), "held_back": len(frames.held_back),
            "held_back_pictures": len(rows), "untrained": len(frames.untrained), "frame_list_hash": split.frame_hash,
            "shrinkage": {name: round(share, 6) for name, share in shrinkage.items()}, "note": frames.note,
            "alarms": alarms, "alarm_rate_interval": [round(end, 4) for end in binomial_interval(alarms, len(rows))],
        },
    )  # fmt: skip
    tensors = novelty_tensors(tuple(scored), distances, regions)
    if is_temporal(method.mode):
        level = fit_level(network, meta, record, tensors, frames, method, watch)
        record.temperatures[str(method)] = settings(method) | {
            "slopes": temperature["slopes"],
            "level": round(level, 6),
        }
    return OwnWorldFit(asdict(record), tensors)


def fit_level(
    network: nn.Module,
    meta: CheckpointMeta,
    record: NoveltyRecord,
    tensors: dict[str, Tensor],
    frames: Frames,
    method: Method,
    watch: Watch,
) -> float:
    """The level of the log temperature with the smoothing of `method` switched on; the slopes are those of single frames.

    Fitted on the untrained frames as clips by a virtual camera, as they are and under EXTRA, each frame with noise of its own.
    """
    fit = record.temperatures["dnn"]
    tempered = TemperedByFrame(WatchedPass(network, record.head(tensors, fit)))
    module = StreamingSegmenter(
        tempered, meta.mean, meta.std, meta.height, dataclasses.replace(method, temperature=1.0)
    )
    ratio = fit_temperature(module, tuning_clips(frames, meta, watch), meta.classes).temperature
    return float(fit["level"]) + math.log(ratio)


class TemperedByFrame(nn.Module):
    """Logits divided by the frame's temperature, as a network."""

    def __init__(self, watched: WatchedPass) -> None:
        super().__init__()
        self.watched = watched
        self.head_stride: int = getattr(watched.network, "head_stride", 1)

    def forward(self, batch: Tensor) -> Tensor:
        logits, sight = self.watched.look(batch)
        return logits / sight.temperature[:, None, None, None]


def tuning_clips(frames: Frames, meta: CheckpointMeta, watch: Watch) -> Iterator[Frame]:
    """Every second clip under one of EXTRA at severity 3, the others as they are; two labelled frames a clip."""
    examples = tuple(frames.split.examples[place] for place in frames.untrained)
    for frame in watch(moving_stills(dataclasses.replace(frames.split, examples=examples)), "smoothed"):
        clip = frame.index // CLIP_FRAMES
        if clip % 2 == 0:
            yield frame
            continue
        kind = EXTRA[clip // 2 % len(EXTRA)]
        yield dataclasses.replace(frame, image=corrupt(frame.image, kind, 3, 13, frame.index))


def with_cameras(
    frames: Frames, places: tuple[int, ...], watch: Watch, title: str, cameras: int = 1
) -> Iterator[Labelled]:
    """Every frame as it is, then as other cameras would give it."""
    for place in watch(places, title):
        image, label = frames.split[place]
        yield image, label
        for number in range(cameras):
            yield random_camera(image, np.random.default_rng([place, number])), label


def fit_distances(
    looker: Looker, frames: Iterable[Labelled], num_classes: int
) -> tuple[list[FrameDistance], RegionDistance, dict[str, float]]:
    """Mean features of every stage but the last, and the last one's class means, in one pass; and their shrinkage.

    Memory is O(C^2), whatever the number of frames. InputError for none.
    """
    wholes: list[GaussianSums] = []
    within: GaussianSums | None = None
    step = 1
    for image, label in frames:
        _, (*features, last), size = looker(image)
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
    classes = within.fit()
    shrinkage = {name: fit.shrinkage for name, fit in zip(looker.stages, [*fits, classes], strict=True)}
    return [FrameDistance.of(fit) for fit in fits], RegionDistance.of(classes, step), shrinkage


def label_places(label: Tensor, size: torch.Size) -> Tensor:
    """(h, w) label at the places of a thinned stage (h', w'), the first of which lies in the corner."""
    rows, columns = (
        (torch.arange(count) * step + step // 2).clamp_max(length - 1)
        for count, length in zip(size, label.shape, strict=True)
        for step in [max(1, round(length / count))]
    )
    return label[rows[:, None], columns[None]]


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
        row = head.statistics(features, found)
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


def tuning_pictures(frames: Frames, watch: Watch) -> Iterator[tuple[bool, np.ndarray, np.ndarray]]:
    """(is it as it is, image, label): untrained frames, and under EXTRA and textures at three severities each."""
    for number, place in enumerate(watch(frames.untrained, "temperature of a frame")):
        image, label = frames.split[place]
        yield True, image, label
        for severity in SEVERITIES:
            for kind in EXTRA:
                yield False, corrupt(image, kind, severity, 11, number), label
            draw = np.random.default_rng([place, severity])
            yield False, under_texture(image, SEVERITIES.index(severity) + 1, draw), label


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(one, 8) for one in values.tolist())
