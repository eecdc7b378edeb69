"""Measures of networks' insides against closed forms: spectra, variances, similarity, groups of samples."""

import math

import pytest
import torch
from refusals import refusal

from steadyseg.studies.analysis.measures.correlation import SpatialCovariance
from steadyseg.studies.analysis.measures.fourier import FLOOR, frequencies, log_amplitude
from steadyseg.studies.analysis.measures.regions import DISTANCES, distance_groups, interval_names, size_groups
from steadyseg.studies.analysis.measures.reliability import GroupTally, scores
from steadyseg.studies.analysis.measures.similarity import MinibatchCka, gram, unbiased_hsic
from steadyseg.studies.analysis.measures.variance import DrawVariance


@pytest.mark.parametrize(("height", "width"), [(16, 16), (15, 15), (16, 24)])
@pytest.mark.parametrize("peak", [2, 5])
def test_a_cosine_along_the_diagonal_peaks_at_its_frequency(height: int, width: int, peak: int) -> None:
    y, x = torch.arange(height)[:, None], torch.arange(width)[None]
    across = round(peak * width / min(height, width))
    wave = 1.0 + torch.cos(2 * math.pi * (peak * y / height + across * x / width))
    amplitude = log_amplitude(wave[None, None])
    assert len(amplitude) == (min(height, width) + 1) // 2
    points = height * width
    assert amplitude[0] == pytest.approx(math.log(points), abs=1e-5)
    assert amplitude[peak] == pytest.approx(math.log(points / 2), abs=1e-4)  # a cosine has half at +f, half at -f
    others = [float(value) for i, value in enumerate(amplitude) if i not in (0, peak)]
    assert max(others) < math.log(10 * FLOOR) + 6  # rounding of 32 bits
    assert frequencies(height, width)[peak] == pytest.approx(2 * peak / min(height, width))


def test_the_axis_ends_just_below_pi() -> None:
    assert frequencies(8, 8).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert frequencies(5, 9).tolist() == pytest.approx([0.0, 0.4, 0.8])
    assert frequencies(2, 2).tolist() == [0.0]


def test_a_constant_has_nothing_above_zero_and_a_point_everything_alike() -> None:
    constant, point = torch.ones(2, 3, 8, 8), torch.zeros(1, 1, 8, 8)
    point[..., 3, 4] = 2.0
    assert (log_amplitude(constant)[1:] < math.log(2 * FLOOR)).all()
    torch.testing.assert_close(log_amplitude(point), torch.full((4,), math.log(2.0 + FLOOR), dtype=torch.float64))


def test_a_blur_takes_from_the_high_frequencies_what_its_response_says() -> None:
    """The 2x2 mean has the response cos(pi f / 2) in each direction, its square on the diagonal."""
    noise = torch.randn(4, 8, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blurred = (noise + noise.roll(1, 2) + noise.roll(1, 3) + noise.roll((1, 1), (2, 3))) / 4
    lost = log_amplitude(blurred) - log_amplitude(noise)
    expected = 2 * torch.log(torch.cos(math.pi * frequencies(32, 32) / 2))
    torch.testing.assert_close(lost, expected, atol=1e-4, rtol=0)


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


def test_groups_are_counted_apart_and_together() -> None:
    tally = GroupTally(3)
    groups = torch.tensor([0, 0, 0, 1, -1])
    confidence = torch.tensor([0.95, 0.95, 0.6, 0.5, 0.9])
    correct = torch.tensor([True, False, True, False, True])
    tally.add(groups, confidence, correct, torch.tensor([0.1, 3.0, 0.5, 0.7, 9.0]))
    first, second = tally.rows(["a", "b", "c"])
    assert (first["group"], first["samples"], second["group"]) == ("a", 3, "b")
    assert first["accuracy"] == pytest.approx(2 / 3) and first["confidence"] == pytest.approx(2.5 / 3)
    assert first["gap"] == pytest.approx(0.5 / 3) and first["nll"] == pytest.approx(1.2)
    assert first["confident_errors"] == pytest.approx(1 / 3) and first["share"] == 0.75
    assert first["ece_15"] == pytest.approx((abs(1.9 - 1) + abs(0.6 - 1)) / 3)
    (both,) = tally.merged([[0, 1]]).rows(["all"])
    assert both["samples"] == 4 and both["accuracy"] == 0.5


def test_scores_of_probabilities() -> None:
    probs = torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    confidence, correct, nll = scores(probs, torch.tensor([0, 0]))
    assert confidence.tolist() == pytest.approx([0.7, 0.8]) and correct.tolist() == [True, False]
    assert nll.tolist() == pytest.approx([-torch.tensor(0.7).log().item(), -torch.tensor(0.2).log().item()])


def test_the_distance_from_a_boundary_is_counted_in_steps() -> None:
    labels = torch.zeros(5, 50, dtype=torch.long)
    labels[:, 25:] = 3
    labels[0] = 11
    groups = distance_groups(labels, 11)
    assert (groups[0] == -1).all()
    expected = [sum(min(abs(x - 24), abs(x - 25)) >= start for start in DISTANCES) for x in range(50)]
    assert groups[2].tolist() == expected and groups[4].tolist() == expected
    assert interval_names(DISTANCES) == ["0-1", "2-3", "4-7", "8-15", "16+"]
    alone = torch.zeros(4, 4, dtype=torch.long)
    alone[0, 0] = 11  # void is no boundary
    assert (distance_groups(alone, 11).flatten()[1:] == len(DISTANCES)).all()


def test_the_size_of_a_region_is_its_own() -> None:
    labels = torch.zeros(40, 40, dtype=torch.long)
    labels[:5, :5] = 1  # 25 pixels
    labels[20:30, 20:30] = 1  # 100 pixels, apart
    labels[39, 39] = 11
    groups = size_groups(labels, 11)
    assert groups[0, 0] == 0 and groups[25, 25] == 1 and groups[10, 30] == 3 and groups[39, 39] == -1
