"""Risk against coverage, compared with sorting every sample in NumPy."""

import math

import numpy as np
import pytest
import torch

from steadyseg.core.evaluation.risk_coverage import CURVE_POINTS, RANKS, RiskCoverage

SAMPLES = 6000


def drawn(seed: int, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Certainties, and which samples are right; the larger the slope, the more the errors gather where it is low."""
    generator = np.random.default_rng(seed)
    certainty = generator.random(SAMPLES)
    return certainty, generator.random(SAMPLES) > 0.4 * (1 - certainty) ** slope


def ranked(certainty: np.ndarray, right: np.ndarray, parts: int = 1) -> RiskCoverage:
    ranking = RiskCoverage()
    for c, r in zip(np.array_split(certainty, parts), np.array_split(right, parts), strict=True):
        ranking.update(torch.from_numpy(c), torch.from_numpy(r))
    return ranking


@pytest.mark.parametrize("slope", [0.0, 1.0, 4.0])
def test_area_curve_and_caught_errors_equal_sorting(slope: float) -> None:
    certainty, right = drawn(1, slope)
    wrong = ~right[np.argsort(-certainty)]
    risks = wrong.cumsum() / np.arange(1, SAMPLES + 1)
    ranking, bin_ = ranked(certainty, right), int(np.bincount((certainty * RANKS).astype(int)).max())
    assert bin_ < 10
    assert ranking.aurc() == pytest.approx(risks.mean(), abs=1e-3)  # the first few samples weigh the most
    for point, coverage in zip(ranking.curve(), np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS, strict=True):
        answered = round(coverage * SAMPLES)
        assert point["coverage"] == pytest.approx(coverage)
        assert abs(point["risk"] - risks[answered - 1]) <= bin_ / answered
    for share in (0.05, 0.1, 0.5):
        caught = wrong[-round(share * SAMPLES) :].sum() / wrong.sum()
        assert abs(ranking.caught(share) - caught) <= bin_ / wrong.sum()
        assert ranking.ceiling(share) == pytest.approx(min(1.0, share * SAMPLES / wrong.sum()))
    assert ranking.curve()[-1]["risk"] == pytest.approx(wrong.mean())


@pytest.mark.parametrize("errors", [0.02, 0.1, 0.35])
def test_a_perfect_ranking_reaches_the_ceiling(errors: float) -> None:
    certainty = (np.arange(1000) + 0.5) / 1000
    ranking = ranked(certainty, certainty > errors)
    assert ranking.caught() == pytest.approx(ranking.ceiling()) == pytest.approx(min(1.0, 0.1 / errors))
    best = 1000 * errors
    least = sum((k - (1000 - best)) / k for k in range(1000 - round(best) + 1, 1001)) / 1000
    assert ranking.aurc() == pytest.approx(least, abs=1e-3)
    clean = round(CURVE_POINTS * (1 - errors))
    risks = [point["risk"] for point in ranking.curve()]
    assert max(risks[:clean]) < 1e-12 and risks[clean] > 0.001


def test_without_errors_nothing_can_be_caught() -> None:
    result = ranked(np.linspace(0, 1, 50), np.ones(50, bool)).result()
    assert result["error_recall_10"] is None and result["error_recall_10_ceiling"] is None
    assert result["aurc"] == 0 and all(point["risk"] == 0 for point in result["risk_coverage"])


def test_ties_share_their_errors_evenly() -> None:
    right = np.arange(300) % 3 > 0
    ranking = ranked(np.full(300, 0.7), right)
    assert ranking.aurc() == pytest.approx(1 / 3) and ranking.caught() == pytest.approx(0.1)
    assert ranking.caught(0.25) == pytest.approx(0.25)
    assert [point["risk"] for point in ranking.curve()] == pytest.approx([1 / 3] * CURVE_POINTS)


def test_two_levels_of_certainty_by_hand() -> None:
    """60 sure samples with 6 errors, 40 unsure ones with 20."""
    certainty, right = np.repeat([0.9, 0.2], [60, 40]), np.arange(100) >= 6
    right[80:] = False
    ranking = ranked(certainty, right)
    assert ranking.caught(0.1) == pytest.approx(0.25 * 20 / 26) and ranking.caught(0.6) == pytest.approx(22 / 26)
    curve = {round(100 * point["coverage"]): point["risk"] for point in ranking.curve()}
    assert curve[30] == pytest.approx(0.1) and curve[80] == pytest.approx((6 + 10) / 80)
    # the integral of (6 + x / 2) / (60 + x) over the second level's 40 samples
    assert ranking.aurc() == pytest.approx((6 + 20 + (6 - 20 / 40 * 60) * math.log(100 / 60)) / 100)


def test_parts_add_up_and_the_ends_of_the_scale_have_their_place() -> None:
    certainty, right = drawn(3, 1.0)
    assert ranked(certainty, right, parts=7).result() == ranked(certainty, right).result()
    ends = ranked(np.array([0.0, 1.0, 1.0 + 1e-4]), np.array([False, True, True]))
    assert ends.caught(1 / 3) == pytest.approx(1.0) and ends.curve()[65]["risk"] == 0
