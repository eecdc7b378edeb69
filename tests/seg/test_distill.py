"""Distillation: the loss against numbers made by hand, what the teacher's maps say, and that they move as the label
does."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from made.trainings import boxes_folder
from refusals import refusal
from test_augment import STILL
from torch import Tensor

from steadyseg.core.classes import CAMVID
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.parts import Run
from steadyseg.core.training.run import train
from steadyseg.seg.data.augment import Augment, Example
from steadyseg.seg.distill import Teacher, soft_loss
from steadyseg.seg.loss import SegmentationLoss
from steadyseg.seg.options import AugmentOptions, SegTrainConfig, UNetOptions
from steadyseg.seg.train import prepare_segmentation
from steadyseg.street.drive import Street

CPU = torch.device("cpu")
COUNT = 4
"""Classes of the painted labels."""


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return Teacher(("street-tiny",), CAMVID, 180, CPU)


@pytest.fixture(scope="module")
def street() -> tuple[np.ndarray, np.ndarray]:
    frame = Street(seed=3, height=180, width=240).frame(40)
    assert frame.label is not None
    return frame.image, frame.label


def test_the_loss_is_that_of_the_hand_computed_pixels() -> None:
    """Three pixels of two classes that weigh 2 and 1/2: teachers sure of class 0, 1/5 and 4/5, and padding."""
    logits = torch.tensor([[0.0, math.log(3), 5.0], [0.0, 0.0, -5.0]], dtype=torch.float64).view(1, 2, 1, 3)
    teacher_probs = torch.tensor([[255, 51, 0], [0, 204, 0]], dtype=torch.uint8).view(1, 2, 1, 3)
    logits.requires_grad_()
    loss, weight = soft_loss(logits, teacher_probs, torch.tensor([2.0, 0.5], dtype=torch.float64))
    by_hand = 2 * math.log(2) - (2 * 0.2 * math.log(3 / 4) + 0.5 * 0.8 * math.log(1 / 4))
    assert loss.item() == pytest.approx(by_hand, rel=1e-12)
    assert weight.item() == pytest.approx(2 + 2 * 0.2 + 0.5 * 0.8, rel=1e-12)
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.equal(logits.grad[..., 2], torch.zeros(1, 2, 1, dtype=torch.float64))
    assert (logits.grad[..., :2] != 0).all()


def test_a_teacher_that_is_sure_teaches_as_the_label() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, COUNT, 5, 7, generator=generator)
    label = torch.randint(COUNT, (2, 5, 7), generator=generator)
    weights = torch.tensor([0.3, 1.0, 2.0, 0.7])
    loss, weight = soft_loss(logits, F.one_hot(label, COUNT).permute(0, 3, 1, 2).to(torch.uint8) * 255, weights)
    torch.testing.assert_close(loss, F.cross_entropy(logits, label, weights, reduction="sum"))
    torch.testing.assert_close(weight, weights[label].sum())


def test_the_maps_of_a_teacher_are_probabilities_in_255ths(
    teacher: Teacher, street: tuple[np.ndarray, np.ndarray]
) -> None:
    image, label = street
    maps = teacher(image)
    assert maps.shape == (len(CAMVID), 180, 256) and maps.dtype == torch.uint8
    total = maps.sum(0, dtype=torch.int64)  # each of the 11 is rounded by 1/2 at most
    assert (total - 255).abs().max() <= len(CAMVID) / 2 and abs(total.float().mean().item() - 255) < 1
    looked_up = F.interpolate(maps[None].float(), label.shape, mode="nearest-exact")[0].argmax(0).numpy()
    known = label != CAMVID.void
    assert (looked_up == label)[known].mean() > 0.75


def test_the_teacher_sees_the_mirror_image_as_well(teacher: Teacher, street: tuple[np.ndarray, np.ndarray]) -> None:
    """One look alone is not symmetric: the network was never built to be."""
    image, mirrored = street[0], np.ascontiguousarray(street[0][:, ::-1])
    apart = (teacher(image).int() - teacher(mirrored).flip(-1).int()).abs()
    assert apart.max() <= 12 and apart.float().mean() < 0.1  # bfloat16 has 8 bits
    module = teacher.modules[0]
    batch = module.normalize(torch.from_numpy(np.stack([image, mirrored])).permute(0, 3, 1, 2).float())
    with torch.inference_mode():
        one, other = module.predictor(batch).probs
    assert (one - other.flip(-1)).abs().max() > 0.2


def test_several_teachers_say_their_mean(teacher: Teacher, street: tuple[np.ndarray, np.ndarray]) -> None:
    """One that is shifted to class 3 everywhere, beside the plain one: half of each."""
    both = Teacher(("street-tiny", "street-tiny"), CAMVID, 180, CPU)
    both.modules[1].predictor.get_submodule("network").head.bias.data[3] += 100.0
    sure = F.one_hot(torch.full((180, 256), 3), len(CAMVID)).permute(2, 0, 1) * 255.0
    half = (teacher(street[0]).float() + sure) / 2
    assert (both(street[0]).float() - half).abs().max() <= 1.5  # each rounds to whole 255ths


def test_a_teacher_sees_pictures_at_its_own_height(teacher: Teacher, street: tuple[np.ndarray, np.ndarray]) -> None:
    small = Teacher(("street-tiny",), CAMVID, 90, CPU)(street[0])
    shrunk = F.interpolate(teacher(street[0])[None].float(), small.shape[-2:], mode="bilinear", antialias=True)[0]
    assert small.shape[-2:] == (90, 128) and (small.float() - shrunk).abs().max() <= 2  # both round to whole 255ths


def test_a_teacher_of_other_classes_is_refused_in_one_line() -> None:
    other = dataclasses.replace(CAMVID, names=CAMVID.names[::-1])
    assert "street-tiny has other classes" in refusal(Teacher, ("street-tiny",), other, 180, CPU)
    Teacher(("street-tiny",), dataclasses.replace(CAMVID, void=254), 180, CPU)  # void is no class


def painted(block: int) -> tuple[np.ndarray, np.ndarray]:
    """A picture of 64x96 in squares of random classes, and its label; the picture's red gives the class too."""
    squares = np.random.default_rng(5).integers(0, COUNT, (64 // block, 96 // block), np.uint8)
    label = squares.repeat(block, 0).repeat(block, 1)
    return np.stack([50 * label + 50] * 3, -1), label


def one_hot(label: np.ndarray, stride: int) -> Tensor:
    """(K, h / stride, w / stride) uint8, 255 at the class of the label."""
    small = torch.from_numpy(label[::stride, ::stride].astype(np.int64))
    return F.one_hot(small, COUNT).permute(2, 0, 1).to(torch.uint8) * 255


@pytest.mark.parametrize(("crop", "stride"), [((40, 48), 1), ((40, 48), 2), ((80, 120), 2)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_teacher_probabilities_move_exactly_as_the_label(seed: int, crop: tuple[int, int], stride: int) -> None:
    """At zoom 1, cropped or padded, and flipped in two of four draws; at half size bilinear keeps 9/16 for a pixel's
    own."""
    image, label = painted(block=2)
    options = dataclasses.replace(STILL, crop_height=crop[0], crop_width=crop[1], flip=0.5)
    augment = Augment(options, 64, void=255)
    picture, target = augment(Example(image, label, one_hot(label, stride)), seed)
    plain_picture, plain_label = augment(Example(image, label), seed)
    assert target.shape == (1 + COUNT, *crop) and target.dtype == torch.uint8
    assert torch.equal(picture, plain_picture) and torch.equal(target[0].long(), plain_label)
    known = target[0] != 255
    assert torch.equal(target[1:].argmax(0)[known], target[0].long()[known]) and known.sum() >= min(64 * 96, 40 * 48)
    assert not target[1:, ~known].any() and not picture[:, ~known].any()  # padding teaches nothing


@pytest.mark.parametrize("zoom", [0.6, 1.5])
def test_a_zoom_keeps_teacher_probabilities_on_their_label(zoom: float) -> None:
    """Only pixels on the edges of the squares of 16 may disagree; off by one pixel, 1 / (16 zoom) and more would."""
    image, label = painted(block=16)
    height, width = round(64 * zoom), round(96 * zoom)
    options = dataclasses.replace(STILL, crop_height=height, crop_width=width, scale_min=zoom, scale_max=zoom)
    _, target = Augment(options, 64, void=255)(Example(image, label, one_hot(label, 2)), 0)
    agree = target[1:].argmax(0) == target[0]
    assert agree.float().mean() > 1 - 0.5 / (16 * zoom)


def test_a_training_learns_from_its_teachers(tmp_path: Path) -> None:
    """The loss is (1 - share) times the labels' loss plus share times the teachers' loss."""
    data = boxes_folder(tmp_path / "data", 4 * [range(11)], background=11)
    config = SegTrainConfig(
        data=data,
        unet=UNetOptions(channels=2, depth=3, dropout=0.0, dropout_places=()),
        size=48,
        loaders=0,
        distill=0.25,
        augment=AugmentOptions(crop_height=32, crop_width=48),
        teacher=("street-tiny",),
        loop=TrainConfig(epochs=1, batch_size=2, precision="fp32", threads=1, evaluate_every=0),
    )
    run = Run(tmp_path / "run", CPU)
    made = prepare_segmentation(config, run)
    assert isinstance(made.loss, SegmentationLoss)
    logits, (_, targets) = torch.randn(2, 11, 32, 48), next(iter(made.batches(0)))
    assert targets.shape == (2, 12, 32, 48) and targets[:, 1:].any()
    total, weight = made.loss(logits, targets)
    soft, soft_weight = soft_loss(logits, targets[:, 1:], made.loss.weights)
    hard = F.cross_entropy(logits, targets[:, 0].long(), made.loss.weights, ignore_index=11, reduction="sum")
    torch.testing.assert_close(total, 0.75 * hard + 0.25 * soft)
    known = targets[:, 0][targets[:, 0] != 11].long()
    torch.testing.assert_close(weight, 0.75 * made.loss.weights[known].sum() + 0.25 * soft_weight)
    list(train(made, config, run))
    assert (tmp_path / "run" / "model.safetensors").exists()
