"""Shares of the training domain, their mean over time, and the interval of a share."""

import math
from dataclasses import replace

import pytest
import torch
from made.worlds import world_record
from pytorch_ood.detector import Mahalanobis

from steadyseg.core.familiarity.gaussians import GaussianSums
from steadyseg.core.familiarity.head import FamiliarityHead
from steadyseg.core.familiarity.record import FamiliarityRecord
from steadyseg.core.familiarity.statistics import ClassDistance, FrameDistance
from steadyseg.core.reference import ReferenceScores, binomial_interval, smooth_score

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
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 3
    features = torch.randn(400, 4, generator=draw) + 3 * torch.nn.functional.one_hot(labels, 4)
    sums = GaussianSums(4, 3)
    sums.update(features, labels)
    sums.frames = 10**9  # no shrinkage
    distance = ClassDistance.of(sums.fit())(features).exp()  # squared, over the channels
    detector = Mahalanobis(None).fit_features(features, labels)  # half of the squared, over the samples
    torch.testing.assert_close(distance * 4 / 2 / 400, detector.predict_features(features), rtol=1e-3, atol=1e-5)
