"""A mean that follows motion, and the scene cuts at which it starts anew."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from made.methods import opened_by_torch

from steadyseg.core.cuts import CUT, MAX_GAP, CutDetector, distance, structure, thumbnail
from steadyseg.core.frame import Frame
from steadyseg.core.method import GATE_FLOOR
from steadyseg.core.motion import STEPS, Motion, MotionEstimator, compose, grey, no_motion, warp, warp_plane
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import State, TemporalSmoothing
from steadyseg.runtime.kernels.postprocess import FusedPostprocess
from steadyseg.street.drive import Street

TAU = 8.0
SIZE = (48, 64)


def textured(seed: int, size: tuple[int, int] = (120, 160)) -> np.ndarray:
    """(H, W, 3) uint8 with structure at several scales, as a street has."""
    import cv2

    generator = np.random.default_rng(seed)
    total = np.zeros(size, np.float32)
    for scale in (4, 8, 16):
        coarse = generator.normal(size=(size[0] // scale + 1, size[1] // scale + 1)).astype(np.float32)
        total += cv2.resize(coarse, size[::-1], interpolation=cv2.INTER_CUBIC) * scale
    low, high = total.min(), total.max()
    return np.repeat(((total - low) / (high - low) * 255).astype(np.uint8)[..., None], 3, axis=2)


def random_motion(seed: int) -> Motion:
    generator = np.random.default_rng(seed)
    height, width = SIZE
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1)
    source = np.rint((grid + generator.normal(0, 3, (height, width, 2))) * STEPS) / STEPS
    source = source.clip((0, 0), (width - 1, height - 1)).astype(np.float32)
    return Motion(source, generator.random(SIZE).astype(np.float32))


def predictions(count: int, classes: int = 5) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [3 * torch.randn(1, classes, *SIZE, generator=generator) for _ in range(count)]


def test_a_shift_is_found_and_believed() -> None:
    wide = textured(0, (120, 170))
    estimate = MotionEstimator()
    assert estimate(wide[:, 4:164], (120, 160)) is None
    motion = estimate(wide[:, :160], (120, 160))  # everything moved 4 pixels to the right
    assert motion is not None
    inner = (slice(12, -12), slice(12, -12))
    ys, xs = np.mgrid[:120, :160]
    assert np.abs(motion.source[..., 0] - (xs - 4))[inner].mean() < 0.25
    assert np.abs(motion.source[..., 1] - ys)[inner].mean() < 0.25
    assert motion.trust[inner].min() > 0.9
    assert estimate(wide[:, :160], (120, 160), gap=0) is None, "a stream that starts anew"


def test_a_larger_frame_is_reduced_by_means_of_its_pixels() -> None:
    shades = np.random.default_rng(0).integers(0, 256, (48, 64), np.uint8)
    means = shades.reshape(24, 2, 32, 2).mean((1, 3))
    assert np.abs(grey(np.repeat(shades[..., None], 3, axis=2), (24, 32)) - means).max() <= 1


def test_another_scene_is_not_believed_and_leaves_the_present_alone() -> None:
    estimate = MotionEstimator()
    estimate(np.zeros((*SIZE, 3), np.uint8), SIZE)
    motion = estimate(np.full((*SIZE, 3), 255, np.uint8), SIZE)
    assert motion is not None and motion.trust.max() < 1e-6
    first, second = (Prediction.from_logits(logits) for logits in predictions(2))
    rule = TemporalSmoothing(TAU, motion=True)
    _, state = rule(first, None)
    mean, _ = rule(second, state, 1, motion)
    torch.testing.assert_close(mean.probs, second.probs, atol=1e-5, rtol=0)


def test_finer_motion_carries_more_labels_to_their_place() -> None:
    """Over three frames of a drawn drive, in pixels whose labels then differ from the truth."""
    frames, wrong = list(Street(seed=5).frames(4)), []
    for fine in (False, True):
        estimate, motion = MotionEstimator(fine), None
        for frame in frames:
            step = estimate(frame.image, (180, 240))
            motion = compose(motion, step) if step else None
        assert motion is not None and frames[0].label is not None and frames[-1].label is not None
        place = np.rint(motion.source).astype(int).clip(0, (239, 179))
        carried = frames[0].label[::2, ::2][place[..., 1], place[..., 0]]
        wrong.append(float((carried != frames[-1].label[::2, ::2]).mean()))
    assert wrong[1] < 0.9 * wrong[0]


def test_another_size_has_no_motion() -> None:
    estimate = MotionEstimator()
    estimate(textured(1), (60, 80))
    assert estimate(textured(1), (120, 160)) is None
    assert estimate(textured(1), (120, 160)) is not None


@pytest.mark.parametrize("size", [(5, 40), (31, 31)])
def test_a_small_picture_stands_still(size: tuple[int, int]) -> None:
    """OpenCV's flow of such sizes raised an error or ended the process."""
    estimate = MotionEstimator()
    estimate(textured(1), size)
    motion = estimate(textured(1), size)
    assert motion is not None and (motion.source == no_motion(size).source).all() and motion.trust.min() > 0.99


def test_torch_and_opencv_warp_alike() -> None:
    motion = random_motion(3)
    plane = np.random.default_rng(4).random(SIZE).astype(np.float32)
    ours = warp(torch.from_numpy(plane)[None, None], motion)[0, 0].numpy()
    np.testing.assert_allclose(ours, warp_plane(plane, motion.source), atol=2e-5)


def test_the_past_of_a_moving_pixel_is_that_of_where_it_was() -> None:
    """One class's blob one pixel to the right each frame: the mean stays on it, and the plain mean smears it."""
    height, width = SIZE
    source = np.stack(np.meshgrid(np.arange(width) - 1.0, np.arange(height)), axis=-1).clip(0, None).astype(np.float32)
    motion = Motion(source, np.ones(SIZE, np.float32))
    moving, plain = TemporalSmoothing(TAU, motion=True), TemporalSmoothing(TAU)
    one = other = None
    for step in range(6):
        probs = torch.full((1, 2, height, width), 0.0)
        probs[:, 0], probs[:, 0, :, 20 + step : 30 + step] = 1.0, 0.0
        probs[:, 1, :, 20 + step : 30 + step] = 1.0
        now = Prediction(probs, torch.zeros(1, height, width))
        followed, one = moving(now, one, motion=motion)
        smeared, other = plain(now, other)
    torch.testing.assert_close(followed.probs, now.probs)
    assert float((smeared.probs - now.probs).abs().max()) > 0.4


def test_the_past_weighs_less_where_it_predicts_another_class() -> None:
    """Two certain classes; after five frames one pixel changes its class and the other keeps it."""
    rule = TemporalSmoothing(TAU, motion=True, gated=True)
    before = Prediction(torch.tensor([[[[1.0, 1.0]], [[0.0, 0.0]]]]), torch.zeros(1, 1, 2))
    now = Prediction(torch.tensor([[[[0.0, 1.0]], [[1.0, 0.0]]]]), torch.zeros(1, 1, 2))
    state: State | None = None
    for _ in range(5):
        _, state = rule(before, state)
    mean, _ = rule(now, state)
    past = sum(math.exp(-k / TAU) for k in range(1, 6))
    torch.testing.assert_close(mean.probs[0, 1, 0], torch.tensor([1 / (1 + GATE_FLOOR * past), 0.0]))


@pytest.mark.parametrize(
    ("stride", "samples", "how"), [(2, 1, {"gated": True}), (1, 3, {}), (2, 1, {"geometric": True})], ids=str
)
def test_the_compiled_kernel_follows_as_torch_does(stride: int, samples: int, how: dict[str, bool]) -> None:
    size = (SIZE[0] * stride, SIZE[1] * stride)
    kernel, rule = (
        FusedPostprocess(5, tau=TAU, samples=samples, stride=stride, motion=True, **how),
        TemporalSmoothing(TAU, motion=True, **how),
    )
    state: State | None = None
    passes = predictions(5 * samples)
    for step in range(5):
        now = [Prediction.from_logits(logits) for logits in passes[step * samples : (step + 1) * samples]]
        mean = Prediction(
            torch.stack([one.probs for one in now]).mean(0), torch.stack([one.member_entropy for one in now]).mean(0)
        )
        motion = random_motion(step) if step else None
        smoothed, state = rule(mean, state, gap=1 + step % 2, motion=motion)  # type: ignore[assignment]
        frame = (logits[0].numpy() for logits in passes[step * samples : (step + 1) * samples])
        kernel(frame, size, 1 + step % 2, motion)
        np.testing.assert_allclose(kernel.probs, smoothed.probs[0].numpy(), atol=1.4e-4)
        np.testing.assert_allclose(kernel.member_entropy, state.member_entropy[0].numpy(), atol=1e-3)


SEEDS = (101, 102, 103)  # no drive of the choice


@pytest.fixture(scope="module")
def drives() -> list[list[np.ndarray]]:
    """Eight neighbouring frames of each street."""
    return [[frame.image for frame in Street(seed=seed).frames(8, start=40)] for seed in SEEDS]


def cuts_in(images: list[np.ndarray], gap: int = 1) -> list[int]:
    """Numbers of the frames before which a cut is found."""
    detector = CutDetector()
    return [number for number, image in enumerate(images) if detector(image, gap if number else 0)]


def test_a_cut_is_found_at_its_frame_and_nowhere_else(drives):
    joined = [image for drive in drives for image in drive]
    assert cuts_in(joined) == [8, 16]


def test_light_fades_and_repeated_frames_are_no_cuts(drives):
    street = drives[0]
    flash = np.clip(street[3].astype(np.float32) * 2.5 + 20, 0, 255).astype(np.uint8)
    fade = [(image * share).astype(np.uint8) for image, share in zip(street[4:], (0.6, 0.3, 0.1, 0.0), strict=True)]
    assert cuts_in([*street[:3], flash, street[3], street[3], *fade]) == []


def test_frames_far_apart_are_not_compared(drives):
    joined = [drives[0][0], drives[1][0]]
    assert cuts_in(joined, MAX_GAP) == [1]
    assert cuts_in(joined, MAX_GAP + 1) == []


def test_thumbnails_of_files_and_of_frames_tell_the_same(drives):
    """A file averages whole pixels of the network's picture, a segmenter any share of a pixel."""
    images = [drive[0] for drive in drives]
    kept = [structure(thumbnail(torch.from_numpy(image).permute(2, 0, 1)[None].float())) for image in images]
    detector = CutDetector()
    for number, (before, now) in enumerate(pairwise(kept)):
        assert detector(images[number], 0) is False
        assert detector(images[number + 1], 1) is bool(distance(before, now) > CUT) is True


@pytest.mark.parametrize(("dark", "noise"), [(2, 1), (10, 6), (20, 6)])
def test_noise_alone_is_no_cut(dark: int, noise: int):
    """A closed lens, a camera at night, and black that is stored as 16: grey noise at three sizes."""
    draw = np.random.default_rng(0)
    for size in ((120, 160), (240, 320), (720, 1280)):
        levels = draw.normal(dark, noise, (4, *size, 1)).repeat(3, -1).round().clip(0, 255)
        assert cuts_in(list(levels.astype(np.uint8))) == []
        kept = structure(thumbnail(torch.from_numpy(levels).permute(0, 3, 1, 2).float()))
        assert float(distance(kept[:-1], kept[1:]).max()) <= CUT


def test_dark_streets_are_still_two_scenes(drives):
    joined = [(image * 0.2).astype(np.uint8) for drive in drives[:2] for image in drive]
    assert cuts_in(joined) == [8]


def test_a_segmenter_marks_the_first_frame_of_a_scene(drives: list[list[np.ndarray]]) -> None:
    frames = [Frame(image, index, 0.0) for index, image in enumerate(drives[0][:3] + drives[1][:3])]
    segmenter = opened_by_torch("street-tiny", mode="vq-dnn", size=64)
    assert [frame.index for frame in frames if segmenter.step(frame).cut] == [3]
