"""Training pictures: the draws by hand, functions of (seed, epoch, sample), and the library's parts in their places."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refusal
from torch import Tensor

from steadyseg.classification.data.augment import Augment, Mixing, rand_augment, shift
from steadyseg.classification.data.labelled import ClassificationSet, whole_view
from steadyseg.classification.options import CLASS_PRESETS, PictureOptions
from steadyseg.core.classes import ClassList

GREY = (0.5, 0.5, 0.5)
PLAIN = PictureOptions(flip=0.0)
STRONG = PictureOptions(rand_augment="rand-m9-n2-mstd1.0")


def pictures(count: int = 40, side: int = 32) -> ClassificationSet:
    generator = np.random.default_rng(0)
    images = generator.integers(1, 256, (count, side, side, 3), dtype=np.uint8)
    classes = ClassList.of_names(["a", "b", "c", "d"])
    return ClassificationSet("cifar10", classes, np.arange(count) % 4, 32, whole_view, images)


def augment(
    options: PictureOptions, seed: int = 3, images: ClassificationSet | None = None
) -> Callable[[int, Sequence[int]], Tensor]:
    made = Augment(options, images or pictures(), 32, GREY, seed)
    return lambda epoch, chosen: made[epoch, chosen][0]


def test_a_shift_is_a_crop_of_the_padded_picture() -> None:
    """A border that reflects mirrors the picture at its outermost pixels: pixel -1 is pixel 1, and pixel 32 is 30."""
    images, corners = pictures(3).images, np.array([[0, 0], [4, 4], [8, 3]])
    for options, mode in ((PLAIN, "constant"), (replace(PLAIN, crop="reflect"), "reflect")):
        found = shift(images, corners, options)
        padded = np.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)), mode)  # type: ignore[call-overload]
        for place, (row, column) in enumerate(corners):
            assert np.array_equal(found[place], padded[place, row : row + 32, column : column + 32])
    rows, columns = [2, 1, *range(30)], [*range(2, 32), 30, 29]
    found = shift(images[:1], np.array([[0, 4]]), PictureOptions(crop="reflect", border=2))
    assert np.array_equal(found[0], images[0][rows][:, columns])


def test_a_border_of_two_pixels_moves_by_up_to_two() -> None:
    images, options = pictures(), replace(PLAIN, crop="reflect", border=2)
    every = {
        shift(images.images[:1], np.array([[row, column]]), options).tobytes(): (row, column)
        for row in range(5)
        for column in range(5)
    }
    made = augment(options)
    seen = {every[made(epoch, [0])[0].permute(1, 2, 0).numpy().tobytes()] for epoch in range(60)}
    assert {row for row, _ in seen} == {column for _, column in seen} == set(range(5))


def test_alternating_flips_change_in_every_epoch() -> None:
    still = replace(PLAIN, border=0)
    straight, made = augment(still)(0, range(40)), augment(replace(still, flip=0.5, alternate=True))
    first, second, third = (made(epoch, range(40)) for epoch in (0, 1, 2))
    turned = (first != straight).flatten(1).any(1)
    assert 8 <= int(turned.sum()) <= 32  # binomial, 40 at 0.5: 3.8 deviations
    assert torch.equal(second, first.flip(-1)) and torch.equal(third, first)


def test_half_of_the_pictures_are_flipped_and_others_in_the_next_epoch() -> None:
    unmoved = replace(PLAIN, flip=1.0)
    straight, turned = augment(PLAIN)(5, range(40)), augment(unmoved)(5, range(40))
    assert torch.equal(straight.flip(-1), turned)
    flipped = [
        (augment(replace(PLAIN, flip=0.5))(e, range(40)) == augment(unmoved)(e, range(40))).flatten(1).all(1)
        for e in (0, 1)
    ]
    assert all(8 <= int(which.sum()) <= 32 for which in flipped) and not torch.equal(*flipped)


@pytest.mark.parametrize("options", [PLAIN, STRONG, PictureOptions(crop="resized")], ids=str)
def test_a_picture_depends_on_seed_epoch_and_sample_alone(options: PictureOptions) -> None:
    made = augment(options)
    whole = made(2, range(40))
    random.seed(9), np.random.seed(9), torch.manual_seed(9)
    parts = torch.cat([made(2, [index]) for index in (7, 30)])
    assert torch.equal(parts, whole[[7, 30]])
    assert whole.shape == (40, 3, 32, 32) and whole.dtype == torch.uint8
    assert not torch.equal(made(3, range(40)), whole)
    assert not torch.equal(augment(options, seed=4)(2, range(40)), whole)


def test_the_global_generators_stay_as_they_were() -> None:
    mixing = Mixing(PictureOptions(mixup=1.0, erasing=1.0), 4, 0)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.rand(), torch.rand(1)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    augment(replace(STRONG, crop="resized"))(0, range(4))
    mixing(torch.randn(4, 3, 8, 8, generator=torch.Generator()), torch.arange(4), 0, range(4))
    assert (random.random(), np.random.rand(), torch.rand(1)) == expected


def test_a_random_part_of_a_picture_is_resized() -> None:
    steep = np.broadcast_to(np.arange(0, 256, 4, np.uint8)[None, :, None], (64, 64, 3))  # 64 columns, each brighter
    images = replace(pictures(20), images=np.stack([steep] * 20))
    made = augment(PictureOptions(crop="resized", flip=0.0), images=images)(0, range(20)).float()
    widths = (made[:, 0, 0, -1] - made[:, 0, 0, 0]) / 4  # columns of the source that are seen
    assert (made.diff(dim=-1) >= 0).all() and 8 < widths.min() < 40 < widths.max() <= 64


def test_a_policy_is_read_or_refused() -> None:
    for text in ("m9", "rand-m9-z4", "rand-m0.5", "rand-"):
        message = refusal(rand_augment, text, GREY)
        assert "rand-m9-n2" in message and text in message
    for preset in CLASS_PRESETS.values():
        assert (rand_augment(preset.pictures.rand_augment, GREY) is None) == (not preset.pictures.rand_augment)


def mixed(options: PictureOptions, epoch: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Six pictures whose every value is their number."""
    batch = torch.arange(6.0)[:, None, None, None].expand(6, 3, 16, 16).clone()
    return Mixing(options, 4, seed)(batch, torch.arange(6) % 4, epoch, range(10, 16))


def test_mixup_and_cutmix_mix_with_the_mirrored_batch_and_so_do_the_labels() -> None:
    """arXiv 1710.09412: lam x_i + (1 - lam) x_j, and the same of the one-hot labels; arXiv 1905.04899: a box of x_j."""
    found, shares = mixed(PictureOptions(mixup=1.0))
    kept = 1 - found[0, 0, 0, 0] / 5  # the value is 0 lam + 5 (1 - lam)
    assert 0 < kept < 1 and torch.allclose(found[1], kept * 1 + (1 - kept) * 4)
    torch.testing.assert_close(shares[0], torch.tensor([kept, 1 - kept, 0.0, 0.0]))
    found, shares = mixed(PictureOptions(cutmix=1.0), epoch=1)
    pasted = float((found[0, 0] == 5).float().mean())
    assert 0 < pasted < 1 and found[0].unique().tolist() == [0.0, 5.0]
    torch.testing.assert_close(shares[0], torch.tensor([1 - pasted, pasted, 0.0, 0.0]))
    _, shares = mixed(PictureOptions(mixup=1.0, label_smoothing=0.2))
    assert float(shares.min()) == pytest.approx(0.2 / 4) and torch.allclose(shares.sum(1), torch.ones(6))
    both = PictureOptions(mixup=1.0, cutmix=0.5, erasing=0.5)
    first, again, other, seeded = mixed(both), mixed(both), mixed(both, epoch=1), mixed(both, seed=1)
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0]) and not torch.equal(first[0], seeded[0])


def test_erasing_puts_the_mean_colour_into_a_rectangle_of_some_pictures() -> None:
    batch = torch.ones(200, 3, 16, 16)
    found, _ = Mixing(PictureOptions(erasing=0.25), 4, 0)(batch, torch.zeros(200, dtype=torch.int64), 0, range(200))
    erased = [picture[0] for picture in found if (picture == 0).any()]
    assert 25 <= len(erased) <= 80  # binomial, 200 at 0.25: five deviations
    for plane in erased:
        rows, columns = (plane == 0).any(1), (plane == 0).any(0)
        assert torch.equal(plane == 0, rows[:, None] & columns)
