"""CKA of features that are known to be alike or not, and covariances in space in closed form."""

import math

import pytest
import torch
from refusals import refusal

from steadyseg.studies.analysis.measures.correlation import SpatialCovariance
from steadyseg.studies.analysis.measures.similarity import MinibatchCka, gram, unbiased_hsic


def features(seed: int, count: int = 12, width: int = 7) -> torch.Tensor:
    return torch.randn(count, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_turned_and_scaled_features_are_the_same() -> None:
    x = features(0)
    turn, _ = torch.linalg.qr(features(1, 7, 7))
    cka = MinibatchCka()
    for start in (0, 6):
        part = x[start : start + 6]
        cka.add([gram(part)], [gram(part), gram(3.0 * part @ turn), gram(part + 5.0)])
    assert cka.result()[0] == pytest.approx([1.0, 1.0, 1.0], abs=1e-9)


def test_the_estimate_has_no_bias_where_the_biased_one_has() -> None:
    """Independent features of far more numbers than pictures: the biased CKA is near 1, this one near 0."""
    found = [unbiased_hsic(gram(features(2 * i, 6, 300)), gram(features(2 * i + 1, 6, 300))) for i in range(300)]
    own = sum(unbiased_hsic(gram(features(i, 6, 300)), gram(features(i, 6, 300))) for i in range(100)) / 100
    assert abs(sum(found) / len(found) / own) < 0.1


def test_hsic_is_that_of_its_definition() -> None:
    """The mean over all quadruples of different samples (Song et al. 2012, Eq. 4)."""
    k, l = (gram(features(seed, 5, 2)) for seed in (3, 4))  # noqa: E741
    total, count = 0.0, 0
    for i in range(5):
        for j in range(5):
            for q in range(5):
                for r in range(5):
                    if len({i, j, q, r}) == 4:
                        total += float(k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q]))
                        count += 1
    assert unbiased_hsic(k, l) == pytest.approx(total / count)


def test_what_has_no_similarity() -> None:
    cka = MinibatchCka()
    cka.add([gram(features(0, 5))], [gram(torch.ones(5, 3))])
    assert cka.result() == [[None]]
    assert "4 pictures or more, got 3" in refusal(unbiased_hsic, torch.eye(3), torch.eye(3))


def test_white_noise_under_a_box_correlates_as_far_as_the_box_reaches() -> None:
    noise = torch.randn(8, 4, 40, 48, generator=torch.Generator().manual_seed(0))
    box = (noise[..., 1:, 1:] + noise[..., :-1, 1:] + noise[..., 1:, :-1] + noise[..., :-1, :-1]) / 2
    covariance = SpatialCovariance(4)
    for batch in box.split(4):
        covariance.add(batch)
    assert covariance.along_axes() == pytest.approx([1.0, 0.5, 0.0, 0.0, 0.0], abs=0.02)
    assert covariance.correlation()[1, 4 + 1] == pytest.approx(0.25, abs=0.02)
    assert covariance.variance == pytest.approx(1.0, abs=0.03)
    assert covariance.length() == pytest.approx(1 + (0.5 - 1 / math.e) / 0.5, abs=0.05)


def test_covariance_is_that_of_its_definition_on_a_small_map() -> None:
    x = torch.randn(2, 1, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    covariance = SpatialCovariance(3)
    covariance.add(x)
    y = x - x.mean()
    expected = (y[..., :2, 1:] * y[..., 1:, :3]).mean() / (y * y).mean()  # one down, one to the left
    assert covariance.correlation()[1, 3 - 1] == pytest.approx(float(expected))
    assert len(covariance.along_axes()) == 3  # 3 rows: distances 0 to 2


def test_a_gradient_never_falls_and_a_constant_has_no_correlation() -> None:
    slow = SpatialCovariance(2)
    slow.add(torch.linspace(0, 1, 64).expand(1, 1, 64, 64))
    assert slow.length() is None
    flat = SpatialCovariance(2)
    flat.add(torch.ones(1, 1, 4, 4))
    assert flat.correlation().isnan().all() and flat.length() is None
    assert "one point" in refusal(flat.add, torch.ones(1, 1, 1, 1))
