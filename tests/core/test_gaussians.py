"""Class means under one covariance, against the definition computed on all samples at once."""

import numpy as np
import pytest
import torch

from steadyseg.core.familiarity.gaussians import GaussianSums, shrink
from steadyseg.core.familiarity.statistics import ClassDistance, FrameDistance, logit_statistics, subsample

CHANNELS, CLASSES = 5, 3


def samples(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features around three means, ids 0..2 and void 11."""
    draw = np.random.default_rng(seed)
    labels = draw.choice([0, 1, 2, 11], count)
    mixing = draw.normal(size=(CHANNELS, CHANNELS))
    means = draw.normal(0, 3, (12, CHANNELS))
    return means[labels] + draw.normal(size=(count, CHANNELS)) @ mixing, labels


def fitted(x: np.ndarray, labels: np.ndarray, frames: int):  # type: ignore[no-untyped-def]
    sums = GaussianSums(CHANNELS, CLASSES)
    for part, ids in zip(np.array_split(x, frames), np.array_split(labels, frames), strict=True):
        sums.update(torch.from_numpy(part), torch.from_numpy(ids))
    return sums.fit()


def test_distances_are_those_of_the_definition() -> None:
    x, labels = samples(4000)
    found = fitted(x, labels, 400)
    kept = labels < CLASSES
    means = np.stack([x[labels == k].mean(0) for k in range(CLASSES)])
    centred = x[kept] - means[labels[kept]]
    covariance = centred.T @ centred / kept.sum()
    share = found.shrinkage
    covariance = (1 - share) * covariance + share * np.trace(covariance) / CHANNELS * np.eye(CHANNELS)
    inverse = np.linalg.inv(covariance)
    wanted = np.stack([np.einsum("ij,jk,ik->i", x - m, inverse, x - m) for m in means]).min(0)
    white = (torch.from_numpy(x) - found.mean) @ found.matrix.T
    got = torch.cdist(white, found.centres).amin(1) ** 2
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-8)
    assert 0 < share < 0.02, "400 frames of 5 channels hardly need shrinkage"


def test_the_convolutions_compute_the_same_on_every_fourth_pixel() -> None:
    x, labels = samples(12 * 16)
    found = fitted(x, labels, 24)
    features = torch.from_numpy(x.T.reshape(1, CHANNELS, 12, 16)).float()
    logs = ClassDistance.of(found).at(subsample(features, 4))
    white = (torch.from_numpy(x) - found.mean) @ found.matrix.T
    places = white.reshape(12, 16, CHANNELS)[::4, ::4].reshape(-1, CHANNELS)
    wanted = (torch.cdist(places, found.centres).amin(1) ** 2 / CHANNELS + 1e-6).log()
    assert logs.shape == (1, 3, 4)
    torch.testing.assert_close(logs.flatten().double(), wanted, atol=1e-4, rtol=0)


def test_a_frames_distance_is_that_of_its_mean_and_a_map_of_one_pixel_is_a_vector() -> None:
    x, labels = samples(200)
    found = fitted(x, labels, 20)
    stage, vectors = FrameDistance.of(found), torch.from_numpy(x[:6]).float()
    whole = stage(vectors.T.reshape(1, CHANNELS, 2, 3))
    white = found.matrix @ (torch.from_numpy(x[:6]).mean(0) - found.mean)
    torch.testing.assert_close(whole.double(), ((white**2).mean() + 1e-6).log()[None], atol=1e-4, rtol=0)
    assert torch.equal(stage(vectors[:, :, None, None]), stage(vectors))


def test_fewer_frames_than_channels_are_shrunk_and_a_single_one_wholly() -> None:
    draw = np.random.default_rng(0).normal(size=(3, 50))
    few, share = shrink(torch.from_numpy(draw.T @ draw / 3), 3)
    assert 0.3 < share <= 1 and torch.linalg.matrix_rank(few) == 50
    alone, share = shrink(torch.diag(torch.tensor([1.0, 3.0])), 1)
    assert share == 1 and torch.equal(alone, 2 * torch.eye(2))


def test_a_channel_that_never_varies_and_a_class_that_never_occurs_are_no_harm() -> None:
    x, labels = samples(400)
    x[:, 2] = 0.0
    found = fitted(x, np.where(labels == 1, 0, labels), 40)
    assert found.centres.shape == (2, CHANNELS)
    assert torch.isfinite(found.matrix).all() and torch.isfinite(found.centres).all()


def test_logit_statistics_of_a_hand_made_case() -> None:
    # two classes, one row of two sampled places: a sure and an unsure one
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]]).T.repeat_interleave(4, 1)[None, :, None, :]
    entropy, lead, spread = logit_statistics(logits)[0].tolist()
    p = 1 / (1 + np.exp(-2))
    sure = -(p * np.log(p) + (1 - p) * np.log(1 - p)) / np.log(2)
    assert entropy == pytest.approx((sure + 1) / 2) and lead == pytest.approx(0.5) and spread == pytest.approx(0.5)
