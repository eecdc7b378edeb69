"""The compiled maps against their definition in torch."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from steadyseg.core.prediction import Prediction, mean_prediction
from steadyseg.core.preprocess import enlarge
from steadyseg.core.temporal import State, TemporalSmoothing
from steadyseg.runtime.kernels.postprocess import FusedPostprocess, PostprocessMaps

Frames = list[list[np.ndarray]]


def frames(
    count: int, classes: int, size: tuple[int, int], samples: int = 1, spread: float = 2.0, seed: int = 0
) -> Frames:
    """A still picture with noise of its own in every pass: predictions from sure to unsure."""
    noise = np.random.default_rng(seed)
    scene = spread * noise.standard_normal((classes, *size))
    return [
        [(scene + spread * noise.standard_normal(scene.shape)).astype(np.float32) for _ in range(samples)]
        for _ in range(count)
    ]


class Definition:
    """One stream in double precision."""

    def __init__(self, temperature: float, tau: float | None) -> None:
        self.temperature = temperature
        self.smoothing = None if tau is None else TemporalSmoothing(tau)
        self.state: State | None = None

    def step(self, passes: list[np.ndarray], gap: int) -> Prediction:
        members = [Prediction.from_logits(torch.from_numpy(x)[None].double(), self.temperature) for x in passes]
        mean = mean_prediction(members)
        if self.smoothing is not None:
            mean, self.state = self.smoothing(mean, self.state, gap)
        return mean


def agree(ours: FusedPostprocess, maps: PostprocessMaps, mean: Prediction, size: tuple[int, int]) -> float:
    """Checks the state and the maps; returns the share of equal labels."""
    np.testing.assert_allclose(ours.probs, mean.probs[0], rtol=0, atol=3e-5)
    np.testing.assert_allclose(ours.member_entropy, mean.member_entropy[0], rtol=0, atol=3e-5)
    probs = enlarge(mean.probs, size)[0]
    scale = 255.0 / mean.max_entropy
    within_one_level(maps.confidence, 255.0 * probs.amax(0))
    within_one_level(maps.entropy, scale * enlarge(mean.entropy[None], size)[0, 0])
    within_one_level(maps.disagreement, scale * enlarge(mean.disagreement[None], size)[0, 0])
    first, second = probs.topk(2, dim=0).values
    equal = torch.from_numpy(maps.label) == probs.argmax(0)
    assert equal[first - second > 1e-4].all()
    return float(equal.double().mean())


def within_one_level(values: np.ndarray, expected: Tensor) -> None:
    assert values.dtype == np.uint8 and values.shape == tuple(expected.shape)
    rounded = np.clip(np.floor(expected.numpy() + 0.5), 0, 255)
    assert np.abs(values.astype(int) - rounded).max() <= 1
    assert np.abs(values - expected.numpy()).mean() < 0.4  # rounded, not cut off: 0.25 on average


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("classes", "size", "samples", "temperature", "tau"),
    [
        (2, (131, 127), 1, 1.7, 1.25),
        (11, (66, 90), 3, 1.0, 1.25),
        (11, (41, 96), 1, 0.6, None),
        (11, (33, 47), 1, 1.0, 50.0),
        (32, (37, 53), 1, 1.0, 3.3),
        (32, (1, 61), 3, 1.5, 0.4),
    ],
)
def test_a_run_follows_the_definition(stride, classes, size, samples, temperature, tau):
    coarse = (-(-size[0] // stride), -(-size[1] // stride))
    ours = FusedPostprocess(classes, temperature=temperature, tau=tau, samples=samples, stride=stride, threads=2)
    definition, shares = Definition(temperature, tau), []
    for index, passes in enumerate(frames(30, classes, coarse, samples)):
        if index == 20:
            ours.reset()
            definition.state = None
        gap = 1 + (index % 7 == 3) + 5 * (index == 12)
        shares.append(agree(ours, ours(passes, size, gap), definition.step(passes, gap), size))
    assert np.mean(shares) >= 0.9999


@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_extreme_logits(temperature: float) -> None:
    noise = np.random.default_rng(1)
    signs = 80.0 * noise.choice([-1.0, 1.0], (11, 16, 16))
    equal = np.full((11, 16, 16), 7.0)
    huge = 3e4 * noise.standard_normal((11, 16, 16))
    run = [[x.astype(np.float32)] for x in (signs, equal, huge, -signs, equal, equal)]
    ours, definition = FusedPostprocess(11, temperature=temperature), Definition(temperature, 1.25)
    for passes in run:
        agree(ours, ours(passes, (16, 16)), definition.step(passes, 1), (16, 16))


@pytest.mark.parametrize("stride", [1, 2])
def test_of_equal_classes_the_first_is_the_label(stride: int) -> None:
    logits = np.zeros((256, 5, 6), np.float32)
    maps = FusedPostprocess(256, stride=stride)([logits], (5 * stride, 6 * stride))
    assert not maps.label.any() and (maps.entropy == 255).all() and not maps.disagreement.any()
    logits[[200, 255]] = 9.0
    assert (FusedPostprocess(256, stride=stride)([logits], (5 * stride, 6 * stride)).label == 200).all()


def test_minus_infinity_is_a_probability_of_0_unless_no_class_is_left() -> None:
    (logits,) = frames(1, 11, (20, 30))[0]
    logits[3] = -np.inf
    ours = FusedPostprocess(11)
    agree(ours, ours([logits], (20, 30)), Definition(1.0, 1.25).step([logits], 1), (20, 30))
    logits[:, 5, 5] = -np.inf
    assert not ours([logits], (20, 30)).confidence.any()


@pytest.mark.parametrize("stride", [1, 2])
def test_two_streams_in_two_threads_do_not_meet(stride: int) -> None:
    size, runs = (96 * stride, 128 * stride), [frames(40, 11, (96, 128), seed=seed) for seed in (1, 2)]
    alone = [
        [FusedPostprocess.__call__(one, x, size) for x in run]
        for run in runs
        for one in [FusedPostprocess(11, stride=stride)]
    ]
    together: list[list[PostprocessMaps]] = [[], []]
    start = threading.Barrier(2)

    def stream(which: int) -> None:
        ours = FusedPostprocess(11, stride=stride, threads=4)
        start.wait()
        together[which] += [ours(passes, size) for passes in runs[which]]

    threads = [threading.Thread(target=stream, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for expected, got in zip(alone, together, strict=True):
        np.testing.assert_array_equal(np.array(expected), np.array(got))


def test_a_pass_is_used_before_the_next_is_asked_for() -> None:
    passes = frames(1, 11, (20, 30), samples=3)[0]
    buffer = np.empty_like(passes[0])

    def shared() -> Iterator[np.ndarray]:
        for one in passes:
            buffer[:] = one
            yield buffer

    expected = FusedPostprocess(11, samples=3)(passes, (20, 30))
    np.testing.assert_array_equal(np.array(FusedPostprocess(11, samples=3)(shared(), (20, 30))), np.array(expected))


def test_an_error_among_the_passes_forgets_the_earlier_frames() -> None:
    first, second, third = frames(3, 11, (20, 30), samples=2)
    ours = FusedPostprocess(11, samples=2)
    ours(first, (20, 30))
    with pytest.raises(ValueError, match="2 passes, got 1"):
        ours(second[:1], (20, 30))
    after = ours(third, (20, 30))
    np.testing.assert_array_equal(np.array(after), np.array(FusedPostprocess(11, samples=2)(third, (20, 30))))
    with pytest.raises(ValueError, match="2 passes, got more"):
        ours(first + second, (20, 30))


def test_wrong_input_is_named() -> None:
    logits = np.zeros((11, 20, 30), np.float32)
    ours = FusedPostprocess(11)
    ours([logits], (20, 30))
    with pytest.raises(ValueError, match="reset first"):
        ours([logits], (30, 20))
    with pytest.raises(ValueError, match="gap"):
        ours([logits], (20, 30), gap=0)
    backwards = np.zeros((30, 20, 11), np.float32).T
    for wrong in (logits[:10], logits.astype(np.float64), backwards):
        with pytest.raises(ValueError, match="logits must be"):
            ours([wrong], (20, 30))
    ours.reset()
    assert ours([logits], (20, 30)).label.shape == (20, 30)
    logits.flags.writeable = False
    ours([logits], (20, 30))  # as some runtimes hand their output out


def test_the_state_is_small_and_handed_out_as_a_copy() -> None:
    ours = FusedPostprocess(11)
    ours(frames(1, 11, (20, 30))[0], (20, 30))
    assert ours.state_bytes == 20 * 30 * (11 * 2 + 4) + 4  # mean, member entropy, mass
    before = ours.probs
    ours.probs[:] = 0
    ours.member_entropy[:] = -1
    np.testing.assert_array_equal(ours.probs, before)
    assert ours.member_entropy.min() >= 0


def test_without_a_folder_to_cache_in_the_kernels_still_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import types
    from numba.core.caching import CompileResultCacheImpl

    from steadyseg.runtime.kernels.enlarge import _split
    from steadyseg.runtime.kernels.update import compile_kernel

    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])

    arrays = [types.Array(kind, 1, "C") for kind in (types.int32, types.uint8, types.uint8)]
    split = compile_kernel(_split.py_func, tuple(arrays))
    label, confidence = np.zeros((2, 1), np.uint8)
    split(np.array([16 * 65535 * 256 + 255 - 7], np.int32), label, confidence)
    assert (label[0], confidence[0]) == (7, 255)
