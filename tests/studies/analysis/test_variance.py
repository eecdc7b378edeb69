"""Variances of maps against variances of the same numbers in one array."""

import pytest
import torch

from steadyseg.studies.analysis.measures.variance import DrawVariance


def test_each_variance_is_that_of_the_whole_array() -> None:
    draws = 1e3 + torch.randn(5, 2, 3, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    moments = DrawVariance()
    for maps in draws:
        moments.add(maps)
    found = moments.result()
    assert found["positions"] == pytest.approx(float(draws.flatten(3).var(-1).mean()))
    assert found["draws"] == pytest.approx(float(draws.var(0).mean()))
    assert found["both"] == pytest.approx(float(draws.permute(1, 2, 0, 3, 4).flatten(2).var(-1).mean()))
    assert found["averaged"] == pytest.approx(float(draws.mean(0).flatten(2).var(-1).mean()))


def test_one_draw_has_positions_alone_and_equal_draws_have_none() -> None:
    maps, moments = torch.rand(1, 2, 3, 3), DrawVariance()
    moments.add(maps)
    assert moments.result() | {"positions": 0} == {"positions": 0, "draws": None, "both": None, "averaged": None}
    moments.add(maps)
    found = moments.result()
    assert found["draws"] == 0 and found["averaged"] == pytest.approx(found["positions"])
