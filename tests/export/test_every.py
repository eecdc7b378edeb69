"""Maps that are carried between network calls: the composed motion, the kernel against torch, and when calls come."""

import dataclasses
import threading
from concurrent.futures import Future
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from made.waiting import PATIENCE_S
from refusals import refusal

from steadyseg import Frame, Maps, open_segmenter
from steadyseg.core.expected import LOST_A_FRAME
from steadyseg.core.motion import Motion, compose, inside, no_motion, warp
from steadyseg.core.prediction import Prediction
from steadyseg.core.preprocess import enlarge
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.every import AUTO_MOST, CarryingBackend
from steadyseg.runtime.kernels.carried import LOSS, CarriedMaps
from steadyseg.street.drive import Street

SIZE = (40, 60)


def shift(x: float, y: float, trust: float = 1.0) -> Motion:
    """A motion in which everything moved by (x, y) pixels."""
    still = no_motion(SIZE)
    return Motion(still.source - np.array([x, y], np.float32), still.trust * np.float32(trust))


def test_two_motions_in_a_row_are_one() -> None:
    motion = compose(compose(None, shift(2, 1, 0.5)), shift(-5, 3.25, 0.5))
    np.testing.assert_array_equal(motion.source, shift(-3, 4.25).source)
    np.testing.assert_array_equal(motion.trust, np.full(SIZE, 0.25, np.float32))
    found = inside(shift(3, 0).source)
    assert not found[:, :3].any() and found[:, 3:].all()


@pytest.mark.parametrize("stride", [1, 2])
def test_the_kernel_warps_and_fades_as_torch_does(stride: int) -> None:
    noise = np.random.default_rng(0)
    logits = torch.from_numpy(4 * noise.standard_normal((1, 7, *SIZE)).astype(np.float32))
    probs = logits.softmax(1)
    source = shift(3.5, -2).source + 4 * noise.standard_normal((*SIZE, 2)).astype(np.float32)
    motion = Motion(np.round(source * 32) / np.float32(32), noise.random(SIZE, np.float32))
    disagreement = noise.integers(0, 255, SIZE, np.uint8)
    carried = CarriedMaps(probs[0].numpy(), disagreement, stride)
    maps = carried(motion, keep_probs=True)
    lost = torch.from_numpy(LOSS * (1 - motion.trust) ** 2)
    expected = (1 - lost) * warp(probs, motion) + lost / 7
    np.testing.assert_allclose(carried.probs, expected[0], atol=5e-5)
    size = (SIZE[0] * stride, SIZE[1] * stride)
    fine, entropy = enlarge(expected, size)[0], Prediction(expected, torch.zeros(1, *SIZE)).entropy
    first, second = fine.topk(2, dim=0).values
    sure = first - second > 1e-3
    assert (torch.from_numpy(maps.label) == fine.argmax(0))[sure].all() and sure.float().mean() > 0.9
    for found, wanted in (
        (maps.confidence, 255 * first),
        (maps.entropy, 255 / np.log(7) * enlarge(entropy[None], size)[0, 0]),
        (maps.disagreement, enlarge(warp(torch.from_numpy(disagreement)[None, None].float(), motion), size)[0, 0]),
    ):
        assert np.abs(found.astype(float) - wanted.numpy()).max() <= 1.51


def drive(count: int, seed: int = 5) -> list[Frame]:
    return drawn(seed)[:count]


@cache
def drawn(seed: int) -> list[Frame]:
    return list(Street(seed=seed).frames(9, 0))


def calls(segmenter: Segmenter, frames: list[Frame]) -> list[bool]:
    return [segmenter.step(frame).network for frame in frames]


def test_the_network_runs_on_every_third_frame_and_at_a_cut() -> None:
    segmenter = open_segmenter("street-tiny", every=3, backend="openvino")
    frames = [frame for frame in drive(5)] + [
        Frame(frame.image, frame.index + 5, frame.time_s) for frame in drive(4, seed=9)
    ]
    assert calls(segmenter, frames) == [True, False, False, True, False, True, False, False, True]
    assert segmenter.resets["cut"] == 1
    assert "network every 3 (it ran for 4 of 9 frames)" in segmenter.why


def test_a_frame_whose_light_jumps_has_the_network_at_once() -> None:
    frames = drive(4)
    frames[1] = Frame(np.clip(frames[1].image.astype(int) + 70, 0, 255).astype(np.uint8), 1, 0.04)
    assert calls(open_segmenter("street-tiny", every=10), frames) == [True, True, True, False]


def test_auto_decides_by_the_picture() -> None:
    image, noise = drive(1)[0].image, np.random.default_rng(0)
    still = [Frame(image, index, index / 25) for index in range(AUTO_MOST + 1)]
    assert calls(open_segmenter("street-tiny", every="auto"), still) == [True, *[False] * (AUTO_MOST - 1), True]
    noisy = [Frame(noise.integers(0, 255, image.shape, np.uint8), index, index / 25) for index in range(4)]
    assert all(calls(open_segmenter("street-tiny", every="auto"), noisy))


@pytest.mark.parametrize("mode", ["dnn", "vq-dnn"])
@pytest.mark.parametrize("backend", ["openvino", "torch"])
def test_a_still_picture_keeps_its_maps_and_a_drive_its_labels(backend: Any, mode: Any) -> None:
    image = drive(1)[0].image
    segmenter = open_segmenter("street-tiny", mode=mode, every=2, backend=backend, keep_probs=True)
    first, second = (segmenter.step(Frame(image, index, index / 25)) for index in range(2))
    assert first.network and not second.network and first.probs is not None and second.probs is not None
    np.testing.assert_allclose(first.probs, second.probs, atol=2e-5)
    assert (first.label == second.label).mean() > 0.999
    whole, carried = (open_segmenter("street-tiny", mode=mode, every=n, backend=backend) for n in (1, 2))
    for frame in drive(6):
        one, other = whole.step(frame), carried.step(frame)
        assert (one.label == other.label).mean() > 0.95
        assert other.expected_accuracy > 0.5 and other.verdict == one.verdict


def test_the_expected_accuracy_falls_with_each_frame_that_maps_are_carried() -> None:
    """It is taken from the last call: a checkpoint without statistics, or a graph, whose maps bring their own."""

    class Told(CarryingBackend):
        def _run(self, call: Any, image: np.ndarray, gap: int, motion: Motion | None) -> None:
            super()._run(call, image, gap, motion)
            maps = dataclasses.replace(call.answer.result()[0], familiarity=0.5, expected_accuracy=0.8)
            call.answer = Future()
            call.answer.set_result((maps, None))

    frames = drive(5)
    whole = open_segmenter("street-tiny", every=4)
    graph = Segmenter(Told(open_segmenter("street-tiny")._backend, 4))
    for segmenter, at_call in ((whole, open_segmenter("street-tiny").step(frames[0]).expected_accuracy), (graph, 0.8)):
        found = [segmenter.step(frame).expected_accuracy for frame in frames[:4]]
        assert found == pytest.approx([at_call * (1 - LOST_A_FRAME * age) for age in range(4)], abs=1e-6)
        assert segmenter.step(frames[4]).network


class Held(CarryingBackend):
    """A network that ends a call when the test says so."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, "live")
        self.go = threading.Event()
        self.began: list[int] = []

    def _run(self, call: Any, image: np.ndarray, gap: int, motion: Motion | None) -> None:
        if gap:
            self.began.append(self.frames)
            self.go.wait(PATIENCE_S)
        super()._run(call, image, gap, motion)
        call.seconds = 1.0  # a slow network


def test_in_live_no_frame_waits_for_the_network_and_each_has_maps_of_its_own_time() -> None:
    held = Held(open_segmenter("street-tiny")._backend)
    segmenter, whole = Segmenter(held), open_segmenter("street-tiny")
    frames = drive(9)
    shown = [segmenter.step(frame) for frame in frames[:4]]
    assert [maps.network for maps in shown] == [True, False, False, False]
    assert held.began == [2] and held.calls == 1  # the second frame's call still runs
    held.go.set()
    held._running[0].answer.result(PATIENCE_S)
    shown += [segmenter.step(frame) for frame in frames[4:]]
    assert held.calls >= 2 and held.began[:2] == [2, 5]
    segmenter.wait()
    for maps, frame in zip(shown, frames, strict=True):
        assert (maps.label == whole.step(frame).label).mean() > 0.9


def test_an_error_of_the_network_beside_reaches_the_frame_that_takes_its_answer() -> None:
    class Broken(Held):
        def _run(self, call: Any, image: np.ndarray, gap: int, motion: Motion | None) -> None:
            if gap:
                call.answer.set_exception(MemoryError("full"))
            else:
                super()._run(call, image, gap, motion)

    segmenter, frames = Segmenter(Broken(open_segmenter("street-tiny")._backend)), drive(3)
    segmenter.step(frames[0])
    segmenter.step(frames[1])
    with pytest.raises(MemoryError):
        segmenter.step(frames[2])


def test_maps_that_are_not_finite_are_carried_nowhere() -> None:
    class Spoilt(CarryingBackend):
        def _run(self, call: Any, image: np.ndarray, gap: int, motion: Motion | None) -> None:
            super()._run(call, image, gap, motion)
            if self.frames == 1:
                maps: Maps = call.answer.result()[0]
                for shade, level in ((maps.confidence, 0), (maps.entropy, 255)):
                    shade[:] = level

    segmenter = Segmenter(Spoilt(open_segmenter("street-tiny")._backend, 5))
    assert calls(segmenter, drive(3)) == [True, True, False]


@pytest.mark.parametrize(("every", "options"), [(0, {}), (31, {}), ("often", {}), (2, {"motion": False}), (True, {})])
def test_what_cannot_be_carried_is_one_line(every: Any, options: dict[str, Any]) -> None:
    message = refusal(open_segmenter, "street-tiny", every=every, **options)
    assert message.startswith("every ") and ("follows none" in message if options else "1 to 30" in message)
