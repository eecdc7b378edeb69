"""The mean with a lag against sums written out: gaps, breaks, sizes and ends of a stream, frame by frame."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from made.methods import opened_by_torch
from refusals import refusal

from steadyseg.core.frame import Frame
from steadyseg.core.lag import LaggedSmoothing
from steadyseg.core.method import Method, MethodOptions
from steadyseg.core.prediction import Prediction
from steadyseg.core.segmenter import segment
from steadyseg.seg.street.drive import Street

TAU = 1.25


def written(times: list[float], runs: list[int], values: np.ndarray, lag: int) -> Iterator[np.ndarray]:
    """The definition: exp(-|t| / tau) over all earlier frames of the run and the F frames that come after it."""
    for now in range(len(times)):
        window = [k for k in range(min(now + lag + 1, len(times))) if runs[k] == runs[now]]
        weights = np.exp([-abs(times[k] - times[now]) / TAU for k in window])
        yield np.tensordot(weights / weights.sum(), values[window], 1)


@pytest.mark.parametrize("lag", [1, 3])
def test_streams_of_a_batch_have_the_sums_of_their_own_gaps_and_breaks(lag: int) -> None:
    generator = np.random.default_rng(0)
    count, batch = 12, 2
    values = generator.dirichlet(np.ones(4), (batch, count, 2, 3)).transpose(0, 1, 4, 2, 3)  # (B, frames, K, h, w)
    entropies = generator.random((batch, count, 2, 3))
    gaps = generator.integers(1, 4, (batch, count)).astype(float)
    gaps[0, 5], gaps[1, 2], gaps[1, 3] = math.inf, math.inf, math.inf
    gaps[:, 0] = 1
    smoothing, state, means = LaggedSmoothing(TAU, lag), None, []
    for place in [*range(count), *[count - 1] * lag]:
        ended = len(means) >= count
        gap = np.full((batch, 1), math.inf) if ended else gaps[:, place : place + 1]
        now = Prediction(torch.tensor(values[:, place]), torch.tensor(entropies[:, place]))
        mean, state = smoothing(now, state, torch.tensor(gap))
        means.append(mean)
    for stream in range(batch):
        breaks = np.isinf(gaps[stream])
        times = np.cumsum(np.where(breaks, 0, gaps[stream])).tolist()
        runs = np.cumsum(breaks).tolist()
        for place, expected in enumerate(written(times, runs, values[stream], lag)):
            np.testing.assert_allclose(means[place + lag].probs[stream], expected, atol=1e-12)
        for place, expected in enumerate(written(times, runs, entropies[stream], lag)):
            np.testing.assert_allclose(means[place + lag].member_entropy[stream], expected, atol=1e-12)


@pytest.mark.parametrize("at", [0, 3])
def test_a_frame_of_nan_waits_without_weight(at: int) -> None:
    generator = np.random.default_rng(0)
    count, lag, times = 8, 2, [0.0, 1.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0]
    values = generator.dirichlet(np.ones(4), (count, 2, 3)).transpose(0, 3, 1, 2)
    smoothing, state, means = LaggedSmoothing(TAU, lag), None, []
    for place in [*range(count), *[count - 1] * lag]:
        gap = math.inf if len(means) >= count else times[place] - times[place - 1] if place else 1.0
        probs = torch.tensor(values[place, None])
        entropies = torch.zeros(1, 2, 3, dtype=torch.float64)
        if place == at:
            probs, entropies = probs * math.nan, entropies * math.nan
        mean, state = smoothing(Prediction(probs, entropies), state, gap)
        means.append(mean)
    for now in range(count):
        window = [k for k in range(min(now + lag + 1, count)) if k != at]
        weights = np.exp([-abs(times[k] - times[now]) / TAU for k in window])
        expected = np.tensordot(weights / weights.sum(), values[window], 1)
        mean = means[now + lag]
        np.testing.assert_allclose(mean.probs[0], expected, atol=1e-12)
        assert mean.finite is not None and bool(mean.finite) == (now != at)


def street(count: int) -> list[Frame]:
    """Frames with a gap of 3, a break before frame 6 and another size from frame 9 on."""
    frames = []
    for frame in Street(seed=3, height=64, width=96).frames(count):
        image = frame.image[:, :64] if frame.index >= 9 else frame.image
        index = frame.index + (2 if frame.index >= 4 else 0)
        frames.append(Frame(image, index, 0.0, discontinuity=frame.index == 6))
    return frames


@pytest.mark.parametrize(("count", "lag"), [pytest.param(12, 2, marks=pytest.mark.slow), (2, 3), (11, 1)])
def test_a_segmenter_gives_every_frame_its_own_mean(count: int, lag: int) -> None:
    """Two frames with a lag of three come out at the end alone, and so do those before a change of size."""
    flags = {"keep_probs": True, "size": 64, "calibrated": False}
    single = opened_by_torch("street-tiny", mode="dnn", **flags)
    lagged = opened_by_torch("street-tiny", mode="vq-dnn", lag=lag, **flags)
    frames = street(count)
    probs = [single.step(frame).probs for frame in frames]
    found = list(segment(frames, lagged))
    assert [frame.index for frame, _ in found] == [frame.index for frame in frames]
    runs = [0 if place < 6 else 1 if place < 9 else 2 for place in range(count)]
    for run in sorted(set(runs)):
        places = [place for place in range(count) if runs[place] == run]
        values = np.stack([probs[place] for place in places])
        times = [float(frames[place].index) for place in places]
        for place, expected in zip(places, written(times, [0] * len(places), values, lag), strict=True):
            maps = found[place][1]
            assert maps.label.shape == frames[place].image.shape[:2]
            np.testing.assert_allclose(maps.probs, expected, atol=1e-5)
    assert lagged.resets == single.resets


@pytest.mark.parametrize("lag", [0, 2])
def test_a_cut_is_said_at_its_own_frame(lag: int) -> None:
    images = [frame.image for seed in (3, 4) for frame in Street(seed=seed, height=64, width=96).frames(5)]
    frames = [Frame(image, index, 0.0) for index, image in enumerate(images)]
    found = segment(frames, opened_by_torch("street-tiny", mode="vq-dnn", lag=lag, size=64))
    assert [frame.index for frame, maps in found if maps.cut] == [5]


def test_a_segmenter_forgets_what_waits_when_it_is_reset() -> None:
    lagged = opened_by_torch("street-tiny", mode="vq-dnn", lag=2, size=64)
    frames = street(6)
    for frame in frames[:3]:
        list(lagged.steps(frame))
    lagged.reset()
    again = [frame.index for one in (*frames[3:], None) for frame, _ in lagged.steps(one)]
    assert again == [frame.index for frame in frames[3:]]
    assert "come 2 frames late" in refusal(lagged.step, dataclasses.replace(frames[0], discontinuity=True))


def test_a_lag_needs_a_mean_without_motion_and_has_no_temperature() -> None:
    method = MethodOptions(lag=3).resolve()
    assert (method.motion, method.tau, method.lag, str(method)) == (False, TAU, 3, "vq-dnn, tau 1.25, lag 3")
    for options in (MethodOptions(lag=3, motion=True), MethodOptions("dnn", lag=1), MethodOptions(lag=-1)):
        assert "lag must be" in refusal(options.resolve)
    assert "lag must be 0 to 30" in refusal(Method, "vq-dnn", tau=1.0, lag=31)
