"""Corruption errors by hand, and the published table by its sums."""

import pytest

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS
from steadyseg.core.errors import InputError
from steadyseg.studies.robustness.measures.corruption_means import ALEXNET, Scores, corruption_means


def flat(error: float, nll: float, ece: float) -> dict[int, Scores]:
    return dict.fromkeys(range(1, 6), Scores(error, nll, ece))


def test_a_type_is_a_ratio_of_sums() -> None:
    fog = {s: Scores(0.1 * s, 0.2 * s, 0.01 * s) for s in range(1, 6)}
    row = corruption_means({"fog": fog}, "cifar10")["types"]["fog"]
    expected = {"error": 0.3, "nll": 0.6, "ece": 0.03, "ce": 1.5 / 1.1517, "cnll": 3.0 / 3.5492, "cece": 0.15 / 0.3053}
    assert row == pytest.approx(expected)


@pytest.mark.parametrize("data", ALEXNET)
def test_alexnet_itself_has_one_everywhere(data: str) -> None:
    table = ALEXNET[data]
    assert set(table) == set(BENCHMARK_CORRUPTIONS)
    itself = {name: flat(row.error / 5, row.nll / 5, row.ece / 5) for name, row in table.items()}
    result = corruption_means(itself, data)
    assert [result[key] for key in ("mce", "mcnll", "mcece")] == pytest.approx([1.0, 1.0, 1.0])
    assert result["mean_error"] == pytest.approx(sum(row.error for row in table.values()) / 75)


def test_the_mean_is_of_ratios_and_not_a_ratio_of_means() -> None:
    measured = {name: flat(0.2, 1.0, 0.1) for name in BENCHMARK_CORRUPTIONS}
    result = corruption_means(measured, "imagenet")
    assert result["mce"] == pytest.approx(sum(1.0 / row.error for row in ALEXNET["imagenet"].values()) / 15)
    assert result["mcnll"] == pytest.approx(sum(5.0 / row.nll for row in ALEXNET["imagenet"].values()) / 15)
    assert result["mcece"] == pytest.approx(sum(0.5 / row.ece for row in ALEXNET["imagenet"].values()) / 15)
    assert result["mce"] != pytest.approx(15.0 / sum(row.error for row in ALEXNET["imagenet"].values()), rel=1e-3)


@pytest.mark.parametrize(
    ("data", "error", "nll", "ece"),
    [
        ("cifar10", 17.8919, 65.7412, 7.5767),
        ("cifar100", 44.2399, 300.9322, 23.4133),
        ("imagenet", 60.4058, 366.9909, 7.1030),
    ],
)
def test_the_columns_of_the_table_have_their_sums(data: str, error: float, nll: float, ece: float) -> None:
    rows = ALEXNET[data].values()
    sums = [sum(row.error for row in rows), sum(row.nll for row in rows), sum(row.ece for row in rows)]
    assert sums == pytest.approx([error, nll, ece], abs=1e-9)


def test_without_published_pictures_there_are_plain_means_only() -> None:
    measured = {name: flat(0.1 + 0.01 * i, 1.0, 0.05) for i, name in enumerate(BENCHMARK_CORRUPTIONS)}
    result = corruption_means(measured)
    assert result["mean_error"] == pytest.approx(0.17) and result["mean_nll"] == pytest.approx(1.0)
    assert result["mce"] is result["mcnll"] is result["mcece"] is None
    assert {row["ce"] for row in result["types"].values()} == {None}


def test_extra_types_and_missing_ones() -> None:
    measured = {"fog": flat(0.2, 1.0, 0.1), "snow": flat(0.4, 2.0, 0.2), "saturate": flat(0.9, 9.0, 0.9)}
    result = corruption_means(measured, "cifar100")
    assert result["mean_error"] == pytest.approx(0.3) and result["mce"] is None  # a mean over 15 is meant
    assert result["types"]["saturate"]["error"] == pytest.approx(0.9) and result["types"]["saturate"]["ce"] is None
    assert corruption_means({"saturate": flat(0.9, 9.0, 0.9)})["mean_error"] is None
    all_types = {name: flat(0.2, 1.0, 0.1) for name in BENCHMARK_CORRUPTIONS}
    with_extra = corruption_means({**all_types, "saturate": flat(0.9, 9.0, 0.9)}, "cifar100")
    assert with_extra["mce"] == corruption_means(all_types, "cifar100")["mce"] is not None


def test_some_severities_have_a_mean_but_no_ratio() -> None:
    measured = {name: flat(0.2, 1.0, 0.1) for name in BENCHMARK_CORRUPTIONS} | {"fog": {3: Scores(0.5, 2.0, 0.1)}}
    result = corruption_means(measured, "cifar10")
    assert result["types"]["fog"]["error"] == 0.5 and result["types"]["fog"]["ce"] is None and result["mce"] is None
    assert result["mean_error"] == pytest.approx((14 * 0.2 + 0.5) / 15)


@pytest.mark.parametrize(
    ("measured", "published", "message"),
    [
        ({}, None, "one or more types"),
        ({"fog": {}}, None, "one or more severities"),
        ({"fogg": flat(0, 0, 0)}, None, "did you mean fog"),
        ({"fog": {0: Scores(0, 0, 0)}}, None, "fog: severities must be 1, 2, 3, 4 or 5, got 0"),
        ({"fog": flat(0, 0, 0)}, "cifar", "did you mean cifar10"),
    ],
)
def test_bad_input_is_one_clear_line(measured: dict, published: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        corruption_means(measured, published)
