"""The temporal consistency loss: second views lie where their warps say, and only what both show is compared."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from made.trainings import CPU, boxes_folder
from refusals import refusal
from torch import Tensor

from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.parts import Run
from steadyseg.core.training.run import train
from steadyseg.seg.consistency import PER_VIEW, WithViews, add_views, consistency_loss
from steadyseg.seg.options import AugmentOptions, SegTrainConfig, SmpOptions, UNetOptions, check_training
from steadyseg.seg.train import prepare_segmentation

STILL = torch.eye(2, 3)[None]


def moved(pixels: int, width: int) -> Tensor:
    """A second view that shows at x what its picture shows at x + pixels."""
    warp = STILL.clone()
    warp[0, 0, 2] = 2 * pixels / width
    return warp


def smooth_pictures(count: int) -> Tensor:
    """Noise without what sampling between pixels would blur."""
    coarse = torch.rand(count, 3, 6, 8, generator=torch.Generator().manual_seed(0))
    return F.interpolate(coarse, (96, 128), mode="bicubic", align_corners=False).clamp(0, 1) * 255


def test_a_quarter_of_the_pictures_is_seen_twice_and_lies_where_the_warp_says() -> None:
    images, labels = smooth_pictures(2 * PER_VIEW), torch.zeros(2 * PER_VIEW, 96, 128, dtype=torch.long)
    both, targets = add_views(images, labels, seed=3)
    assert both.shape == (2 * PER_VIEW + 2, 3, 96, 128) and len(targets) == 2 * PER_VIEW
    assert torch.equal(both[:-2], images) and torch.equal(targets.targets, labels)
    grid = F.affine_grid(targets.warps, [2, 3, 96, 128], align_corners=False)
    expected = F.grid_sample(images[:2], grid, align_corners=False)
    inside = (grid.abs() < 0.98).all(-1)[:, None].expand_as(expected)
    apart = (both[-2:] - expected)[inside].abs()
    assert 0.3 < apart.mean() < 2.0  # sensor noise
    assert (both[-2:] - images[:2])[inside].abs().mean() > 2 * apart.mean()  # it did move
    again, other = add_views(images, labels, seed=3)[0], add_views(images, labels, seed=4)[0]
    assert torch.equal(again, both) and not torch.equal(other, both)


def test_a_small_batch_has_one_view() -> None:
    assert len(add_views(smooth_pictures(1), torch.zeros(1, 96, 128), 0)[0]) == 2


def test_predictions_that_move_with_the_camera_cost_nothing_and_others_do() -> None:
    generator = torch.Generator().manual_seed(1)
    picture = torch.randn(1, 5, 8, 16, generator=generator)
    known = torch.ones(1, 8, 16, dtype=torch.bool)
    view = torch.cat(
        [picture[..., 3:], 9 * torch.randn(1, 5, 8, 3, generator=generator)], -1
    )  # its last columns are new
    assert float(consistency_loss(torch.cat([picture, view]), moved(3, 16), known)) < 1e-10
    assert float(consistency_loss(torch.cat([picture, view]), STILL, known)) > 0.05
    by_hand = (picture.softmax(1) - view.softmax(1)).square().sum(1).mean()
    torch.testing.assert_close(consistency_loss(torch.cat([picture, view]), STILL, known), by_hand)


def test_padding_is_not_compared() -> None:
    generator = torch.Generator().manual_seed(2)
    picture = torch.randn(1, 5, 8, 16, generator=generator)
    view, known = picture.clone(), torch.ones(1, 8, 16, dtype=torch.bool)
    view[..., :4] = 0.0
    known[..., :4] = False
    assert float(consistency_loss(torch.cat([picture, view]), STILL, known)) < 1e-10
    assert float(consistency_loss(torch.cat([picture, view]), STILL, known & False)) == 0.0


def config(data: Path, **changes: object) -> SegTrainConfig:
    return SegTrainConfig(
        data=data,
        size=48,
        loaders=0,
        augment=AugmentOptions(crop_height=32, crop_width=64),
        auxiliary=0.4,
        loop=TrainConfig(epochs=2, batch_size=4, precision="fp32", threads=1, evaluate_every=0),
        **changes,
    )


NETWORKS = {
    "unet": {"unet": UNetOptions(channels=2, depth=3, dropout=0.0, dropout_places=())},
    "smp": {"network": "smp", "smp": SmpOptions(decoder_channels=(8, 8, 8, 8, 4), decoder_dropout=0.0, head_stride=2)},
}


@pytest.mark.parametrize("network", ["unet", pytest.param("smp", marks=pytest.mark.slow)])
def test_a_training_adds_it_to_the_loss_of_the_labels(tmp_path: Path, network: str) -> None:
    data = boxes_folder(tmp_path / "data", 4 * [range(1, 11)], background=0)
    settings, run = config(data, consistency=0.5, **NETWORKS[network]), Run(tmp_path / "run", CPU)
    made = prepare_segmentation(settings, run)
    images, targets = next(iter(made.batches(0)))
    assert images.shape == (5, 3, 32, 64) and isinstance(targets, WithViews)
    outputs = tuple(head.detach().requires_grad_() for head in made.network.train()(images))
    total, weight = made.loss(outputs, targets)
    alone, same_weight = made.loss(tuple(head[:4] for head in outputs), targets.targets)
    size = outputs[0].shape[-2:]
    expected = consistency_loss(outputs[0], targets.warps, torch.ones(4, *size, dtype=torch.bool))
    assert weight == same_weight and float(expected.detach()) > 0
    torch.testing.assert_close(total, alone + 0.5 * weight * expected)
    total.backward()
    assert outputs[0].grad is not None and outputs[0].grad[4].any(), "the view learns too"
    list(train(made, settings, run))
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_several_passes_a_batch_are_refused() -> None:
    bad = SegTrainConfig(consistency=0.1, loop=TrainConfig(train_samples=2))
    assert "consistency takes one pass" in refusal(check_training, bad)
