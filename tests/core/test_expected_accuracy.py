"""The expected accuracy of a frame: its formula, its fit on made frames, and the layout of the classes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made.worlds import EXPECTED

from steadyseg.core.expected import ExpectedAccuracy, layout_cost
from steadyseg.core.familiarity.fit_expected import Seen, class_costs, fit_expected

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
