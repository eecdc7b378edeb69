"""What a network knows of its training domain: class means under one covariance, shares, and the expected accuracy."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made.worlds import EXPECTED, world_record

from steadyseg.core.expected import ExpectedAccuracy, layout_cost
from steadyseg.core.familiarity.fit_expected import Seen, class_costs, fit_expected
from steadyseg.core.familiarity.gaussians import GaussianSums, shrink
from steadyseg.core.familiarity.head import FamiliarityHead
from steadyseg.core.familiarity.record import FamiliarityRecord
from steadyseg.core.familiarity.statistics import ClassDistance, FrameDistance, logit_statistics, subsample
from steadyseg.core.reference import ReferenceScores, binomial_interval, smooth_score

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


def test_logit_statistics_of_a_hand_made_case():
    # two classes, one row of two sampled places: a sure and an unsure one
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]]).T.repeat_interleave(4, 1)[None, :, None, :]
    entropy, lead, spread = logit_statistics(logits)[0].tolist()
    p = 1 / (1 + np.exp(-2))
    sure = -(p * np.log(p) + (1 - p) * np.log(1 - p)) / np.log(2)
    assert entropy == pytest.approx((sure + 1) / 2) and lead == pytest.approx(0.5) and spread == pytest.approx(0.5)


WORLD = ReferenceScores(tuple(float(score) for score in range(1, 61)))


def test_a_share_counts_the_frames_that_are_at_least_as_novel() -> None:
    assert WORLD.share(0.0) == 1.0 and WORLD.share(1000.0) == pytest.approx(1 / 61)
    assert WORLD.share(60.0) == pytest.approx(2 / 61) and WORLD.share(59.5) == pytest.approx(2 / 61)
    assert WORLD.share(math.nan) == pytest.approx(1 / 61), "what is no number is the most novel"


def test_one_frame_in_twenty_of_the_training_domain_is_novel() -> None:
    novel = sum(WORLD.is_novel(score) for score in WORLD.scores)
    assert novel == 2 and novel / 60 <= 0.05


def test_scores_are_averaged_by_the_recursion_of_the_maps() -> None:
    state, decay, scores = (0.0, 0.0), math.exp(-1 / 8), [3.0, 1.0, 2.0]
    for score in scores:
        state = smooth_score(score, state, decay)
    weights = [decay**2, decay, 1.0]
    assert state[0] == pytest.approx(sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights))
    assert smooth_score(5.0, state, 0.0) == (5.0, 1.0), "a cut starts anew"


def test_a_wildly_novel_frame_is_soon_forgotten() -> None:
    """At a decay of 8 frames, and no number counts like one; what follows is the middle of the training domain."""
    for wild in (1e4, math.inf, math.nan):
        state = smooth_score(WORLD.bounded(wild), (0.0, 0.0), 0.0)
        assert WORLD.is_novel(state[0]) and math.isfinite(state[0])
        for _ in range(6):
            state = smooth_score(30.0, state, math.exp(-1 / 8))
        assert not WORLD.is_novel(state[0])


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(3, 60, 0.0104, 0.1392), (0, 20, 0.0, 0.1684), (20, 20, 0.8316, 1.0), (54, 1080, 0.0378, 0.0647)],
)
def test_binomial_intervals_are_the_published_ones(hits: int, count: int, low: float, high: float) -> None:
    assert binomial_interval(hits, count) == pytest.approx((low, high), abs=2e-4)


def test_an_energy_is_0_at_the_median_and_1_at_the_rarest_hundredth() -> None:
    record = replace(FamiliarityRecord.read(world_record("dec9")), energy_median=-2.0, energy_rare=-1.0)
    head = FamiliarityHead(record, [FrameDistance(2)])
    logits = torch.tensor([[2.0, -1e4], [1.0, -1e4]])  # the energies are -2 and -1
    torch.testing.assert_close(head([torch.zeros(2, 2)], logits).energy.flatten(), torch.tensor([0.0, 1.0]))


def test_the_distance_agrees_with_pytorch_ood() -> None:
    from pytorch_ood.detector import Mahalanobis  # 0.7 s in each process that collects this file

    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 3
    features = torch.randn(400, 4, generator=draw) + 3 * torch.nn.functional.one_hot(labels, 4)
    sums = GaussianSums(4, 3)
    sums.update(features, labels)
    sums.frames = 10**9  # no shrinkage
    distance = ClassDistance.of(sums.fit())(features).exp()  # squared, over the channels
    detector = Mahalanobis(None).fit_features(features, labels)  # half of the squared, over the samples
    torch.testing.assert_close(distance * 4 / 2 / 400, detector.predict_features(features), rtol=1e-3, atol=1e-5)


KNOWN = replace(ExpectedAccuracy.read(EXPECTED), level=0.3, confidence=0.8, score=0.5, layout=0.4)
HOME = [2.3, 2.5]
"""Layout costs of mean 2.4 and deviation 0.1, as in `EXPECTED`."""


def rows(group: str, count: int = 200, seed: int = 0) -> list[Seen]:
    """Frames whose accuracy is exactly as expected."""
    generator = np.random.default_rng(seed)
    given = zip(*(generator.uniform(*ends, count) for ends in ((0.3, 0.98), (-2, 6), (2.2, 3))), strict=True)
    return [Seen(group, *one, float(KNOWN.at(*one))) for one in given]


@pytest.mark.parametrize(
    ("confidence", "score", "layout"), [(0.9, -1.0, 2.4), (0.6, 3.0, 2.9), (1.0, 0.5, 2.2), (0.0, 40.0, 9.0)]
)
def test_odds_are_a_product_of_powers(confidence: float, score: float, layout: float) -> None:
    sure = min(max(confidence, 0.02), 0.98)
    odds = math.exp(0.3) * (sure / (1 - sure)) ** 0.8
    odds /= (1 + math.exp(score - 1)) ** 0.5 * (1 + math.exp((layout - 2.4) / 0.1 - 1)) ** 0.4
    assert KNOWN.at(confidence, score, layout) == pytest.approx(odds / (1 + odds), rel=1e-9)


def test_the_fit_finds_the_weights_of_made_frames() -> None:
    found = fit_expected([*rows("one"), *rows("two", seed=1)], np.array(KNOWN.costs), HOME)
    for name in ("level", "confidence", "score", "layout"):
        assert getattr(found, name) == pytest.approx(getattr(KNOWN, name), abs=0.02), name
    assert (found.layout_mean, found.layout_deviation) == (pytest.approx(2.4), pytest.approx(0.1))
    assert found.error < 0.01
    assert ExpectedAccuracy.read(found.record()).at(0.8, 2.0, 2.5) == pytest.approx(found.at(0.8, 2.0, 2.5), abs=1e-4)


def test_no_weight_is_negative() -> None:
    """Accuracies that fall with confidence, and rise with score and layout."""
    turned = [one._replace(right=1 - one.right) for one in rows("one")]
    found = fit_expected(turned, np.array(KNOWN.costs), HOME)
    assert 0 <= max(found.confidence, found.score, found.layout) < 0.05


def test_the_error_is_of_groups_that_a_fit_did_not_see() -> None:
    """Frames of one confidence, 90 % and 50 % right: each fit expects of the other group what its own has."""
    seen = [Seen(group, 0.7, 0.0, 2.4, right) for group, right in (("one", 0.9), ("two", 0.5)) for _ in range(20)]
    assert fit_expected(seen, np.array(KNOWN.costs), HOME).error == pytest.approx(0.4, abs=0.01)


def test_pictures_that_it_is_not_for_lower_what_is_expected_of_them_alone() -> None:
    noise = [Seen("noise", 0.85, 12.0, 2.9, 0.0)] * 50
    found = fit_expected([*rows("one"), *noise], np.array(KNOWN.costs), HOME)
    assert found.at(0.85, 12.0, 2.9) < 0.02 and abs(found.at(0.85, 0.0, 2.4) - KNOWN.at(0.85, 0.0, 2.4)) < 0.05


def test_a_layout_costs_what_its_classes_cost_in_their_bands() -> None:
    """Every fourth row and column counts: of a 16 x 8 map two pixels in each band."""
    above, below = np.zeros((16, 8), np.uint8), np.zeros((16, 8), np.uint8)
    above[:8] = below[:12] = 1
    costs = class_costs([above, below], 3)
    shares = np.array([[0, 1, 0], [0, 1, 0], [0.5, 0.5, 0], [1, 0, 0]]) + 0.001
    np.testing.assert_allclose(costs, -np.log(shares / 1.003))
    odd = above.copy()
    odd[0, 4] = 2
    assert layout_cost(odd, costs) == pytest.approx((costs[[0, 1, 1, 2, 2, 3, 3, 0], [1, 1, 1, 0, 0, 0, 0, 2]]).mean())
