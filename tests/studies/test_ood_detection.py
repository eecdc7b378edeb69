"""AUROC against counting all pairs, ties as halves."""

import math

import pytest
import torch

from steadyseg.studies.harness.ood_detection import auroc


def slow_auroc(inside: list[float], outside: list[float]) -> float:
    points = sum((o > i) + 0.5 * (o == i) for i in inside for o in outside)
    return points / (len(inside) * len(outside))


@pytest.mark.parametrize(("levels", "shift"), [(0, 0.0), (0, 1.0), (4, 0.5), (2, 0.0), (1, 0.0)])
@pytest.mark.parametrize(("few", "many"), [(1, 1), (1, 40), (57, 83)])
def test_it_is_the_share_of_ordered_pairs(levels: int, shift: float, few: int, many: int) -> None:
    generator = torch.Generator().manual_seed(few)
    inside, outside = torch.randn(few, generator=generator), torch.randn(many, generator=generator) + shift
    if levels:  # many ties
        inside, outside = ((x * levels / 2).round() for x in (inside, outside))
    assert auroc(inside, outside) == slow_auroc(inside.tolist(), outside.tolist())
    assert auroc(outside, inside) == pytest.approx(1 - auroc(inside, outside), abs=1e-15)


def test_the_ends_and_the_middle() -> None:
    low, high = torch.arange(10.0), torch.arange(10.0, 15.0)
    assert auroc(low, high) == 1 and auroc(high, low) == 0 and auroc(low, low) == 0.5
    assert auroc(torch.tensor([-math.inf, 0.0]), torch.tensor([math.inf])) == 1


def test_halves_and_whole_numbers_are_compared_exactly() -> None:
    inside, outside = torch.tensor([2**24]), torch.tensor([2**24 + 1])  # float32 would tie them
    assert auroc(inside, outside) == 1 and auroc(outside, inside) == 0
    assert auroc(torch.tensor([0.5, 0.25], dtype=torch.float16), torch.tensor([0.5])) == 0.75
