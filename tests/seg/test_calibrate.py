"""Fitting on labelled frames, against running the segmenter once for each temperature."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from made.methods import TorchSegmenter, opened_by_torch
from torch import Tensor, nn

from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.conformal import ClassRisk, ConformalScores
from steadyseg.core.evaluation.kept_logits import KeptLogits
from steadyseg.core.evaluation.temperature import GRID
from steadyseg.core.frame import Frame
from steadyseg.core.method import ModeName
from steadyseg.core.predictors import forward_passes
from steadyseg.runtime.torch_backend import TorchBackend
from steadyseg.seg.calibrate import STRIDE, ConformalFit, fit_temperature
from steadyseg.seg.evaluate import probs_at, seed_frames
from steadyseg.seg.streaming import StreamingSegmenter
from steadyseg.street.drive import Street

SEED = 5


@functools.cache
def street(height: int, width: int) -> tuple[Frame, ...]:
    """Six frames as streams have them: one without a label, one dropped before the fourth, a cut before the sixth."""
    frames = list(Street(seed=3, height=height, width=width).frames(6))
    frames[1] = dataclasses.replace(frames[1], label=None)
    frames[3:] = [dataclasses.replace(frame, index=frame.index + 1) for frame in frames[3:]]
    frames[5] = dataclasses.replace(frames[5], discontinuity=True)
    return tuple(frames)


class Halved(nn.Module):
    """A network whose logits have half the input's size."""

    head_stride = 2

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)[..., ::2, ::2]


def opened(mode: ModeName, samples: int | None = None, motion: bool = False, halved: bool = False) -> TorchSegmenter:
    segmenter = opened_by_torch(
        "street-tiny", mode=mode, samples=samples, motion=motion, size=64, calibrated=False, keep_probs=True
    )
    if not halved:
        return segmenter
    network, meta = Halved(segmenter.module.predictor.get_submodule("network")), segmenter.meta
    module = StreamingSegmenter(network, meta.mean, meta.std, 64, segmenter.method)
    return TorchSegmenter(TorchBackend(module, meta, torch.device("cpu"), keep_probs=True))


def run_at(segmenter: TorchSegmenter, frames: tuple[Frame, ...], temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """(K, N) probabilities and (N,) labels of every second row and column of the labelled frames, void left out."""
    segmenter = segmenter.at_temperature(temperature)
    seen, truth = [], []
    for frame in seed_frames(frames, SEED):
        maps = segmenter.step(frame)
        if frame.label is not None:
            probs = torch.from_numpy(maps.probs)[None]
            if probs.shape[-2:] != frame.label.shape:
                probs = F.interpolate(probs, frame.label.shape, mode="bilinear", align_corners=False)
            seen.append(probs[0, :, ::STRIDE, ::STRIDE].flatten(1).numpy())
            truth.append(frame.label[::STRIDE, ::STRIDE].ravel())
    table, ids = np.concatenate(seen, 1), np.concatenate(truth)
    return table[:, ids != CAMVID.void], ids[ids != CAMVID.void].astype(int)


def nll_of(table: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(np.maximum(table[truth, np.arange(len(truth))].astype(np.float64), 1e-12)).mean())


@pytest.mark.parametrize(
    ("mode", "options", "size"),
    [
        ("vq-dnn", {"motion": True}, (75, 101)),  # the network's size is another
        ("vq-bnn", {"samples": 2}, (64, 96)),
        ("bnn", {"samples": 2, "halved": True}, (75, 101)),
    ],
)
def test_the_fit_equals_runs_at_single_temperatures(mode, options, size):
    segmenter, frames = opened(mode, **options), street(*size)
    assert segmenter.method.motion == ("motion" in options)
    found = fit_temperature(segmenter.module, seed_frames(frames, SEED), CAMVID)
    step = int(np.abs(np.log(GRID) - math.log(found.temperature)).argmin())
    tables = {t: run_at(segmenter, frames, t) for t in (1.0, *GRID[step - 1 : step + 2])}
    nll = {t: nll_of(*table) for t, table in tables.items()}
    assert (found.nll, found.pixels) == (pytest.approx(nll[1.0], rel=1e-5), len(tables[1.0][1]))

    bend, slope, _ = np.polyfit([-1, 0, 1], [nll[t] for t in GRID[step - 1 : step + 2]], 2)
    offset = -slope / (2 * bend)
    assert abs(offset) <= 0.5 and bend > 0
    assert found.temperature == pytest.approx(GRID[step] * (GRID[1] / GRID[0]) ** offset, rel=1e-3)
    assert abs(math.log(found.temperature)) > 0.05

    flipped = tables[1.0][0].argmax(0) != tables[GRID[step]][0].argmax(0)
    assert found.flips == pytest.approx(flipped.mean(), abs=1.5 / found.pixels)
    if (mode, options) == ("vq-bnn", {"samples": 2}):
        assert found.flips > 0  # a mean of tempered softmaxes


def test_the_module_s_own_temperature_does_not_matter() -> None:
    segmenter, frames = opened("vq-dnn"), street(64, 96)
    plain = fit_temperature(segmenter.module, seed_frames(frames, SEED), CAMVID)
    other = segmenter.at_temperature(3.0)
    assert fit_temperature(other.module, seed_frames(frames, SEED), CAMVID) == plain
    assert other.method.temperature == 3.0  # and stays as it was


def test_conformal_scores_are_those_of_the_enlarged_probabilities() -> None:
    segmenter, frames = opened("vq-dnn"), street(75, 101)
    fit, scores, risk = ConformalFit(CAMVID.void, 3), ConformalScores(CAMVID.void), ClassRisk(3, CAMVID.void)
    for frame in frames:
        maps = segmenter.step(frame)
        if frame.label is not None:
            small, label = torch.from_numpy(maps.probs)[None], torch.from_numpy(frame.label)
            fit.add(probs_at(frame.label, maps)[0], label)
            assert small.shape[-2:] != label.shape
            probs = F.interpolate(small, label.shape, mode="bilinear", align_corners=False)[0]
            scores.update(probs, label)
            risk.update(probs, label)
    assert fit.scores.threshold(0.9) == scores.threshold(0.9)
    assert fit.risk.images == 5 and fit.risk.control(0.3, "Road") == risk.control(0.3, "Road")
    assert ConformalFit(CAMVID.void).risk is None


def test_a_network_with_dropout_gives_its_kept_logits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has room for the first of two pictures. The second picture is computed again, with its own masks."""
    monkeypatch.setattr("steadyseg.core.evaluation.kept_logits.MAX_KEPT_BYTES", 1)
    network = opened("bnn", 3).module.predictor.get_submodule("network")
    pictures = [torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(n)) for n in range(2)]
    kept, passes = KeptLogits(network), []
    for _ in range(2):
        kept.rewind()
        for place, picture in enumerate(pictures):
            torch.manual_seed(place)
            passes.append(torch.stack(list(forward_passes(kept, picture, 3))))
    assert kept._ends[4:] == [] and not torch.equal(passes[0][0], passes[0][1])
    assert torch.equal(passes[0], passes[2]) and torch.equal(passes[1], passes[3])
