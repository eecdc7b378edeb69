"""Expectations of docs/studies/analysis, against counts by hand."""

from pathlib import Path
from typing import Any

from steadyseg.studies.analysis import expectations
from steadyseg.studies.analysis.__main__ import PAGE
from steadyseg.studies.analysis.runs import all_runs
from steadyseg.studies.harness.reports import data_digests, known_digest


def report(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"results": {"rows": rows}}


def test_curvature_is_compared_mini_batch_by_mini_batch() -> None:
    rows = [
        {"model": model, "batch": batch, "eigenvalues": [value, second]}
        for model, values in (("plain", ((9.0, -0.5), (5.0, -0.4))), ("smooth", ((4.0, 0.3), (6.0, -0.2))))
        for batch, (value, second) in enumerate(values)
    ]
    found = expectations.largest_is_smaller(report(rows))
    assert (found.holds, found.of) == (1, 2) and found.figures.startswith("7 ± 2.83 against 5 ± 1.41")
    found = expectations.fewer_are_negative({"results": {"rows": rows, "top": 2}})
    assert (found.holds, found.of) == (1, 2)
    assert found.figures == "NEP of the 2 largest 50.0 ± 0.0 % against 25.0 ± 35.4 %"


def test_smoothing_layers_are_compared_with_what_enters_them() -> None:
    def row(side: str, amplitude: list[float], positions: float, averaged: float | None = None) -> dict[str, Any]:
        return {
            "model": "smooth",
            "mode": "dnn",
            "unit": "s",
            "map": side,
            "frequency": [0.0, 0.3, 0.6],
            "amplitude": amplitude,
            "positions": positions,
            "draws": averaged,
            "averaged": averaged,
        }

    rows = [row("", [0.0, 0.0, 0.0], 1.0), row("in", [0.0, -1.0, -2.0], 2.0, 1.5), row("out", [0.0, -2.0, -4.0], 1.0)]
    found = expectations.smoothing_is_low_pass(report(rows))
    assert found.figures == "change above 0.3 pi: -1.50" and (found.holds, found.of) == (1, 1)
    assert expectations.variance_falls(report(rows)).figures == "after / before: 0.50"
    drawn = expectations.draws_shrink_variance(report(rows))
    assert drawn is not None and "0.75 to 0.75" in drawn.figures and drawn.of == 1
    assert expectations.draws_shrink_variance(report(rows[:1])) is None


def test_every_run_of_the_document_has_flags_that_the_command_takes() -> None:
    for one in all_runs():
        assert one.job(one.pair.models, one.pair.data).study == one.study


def test_the_committed_studies_are_of_these_networks_this_data_and_these_flags(data_dir: Path) -> None:
    digests = data_digests(data_dir)
    assert all(known_digest(PAGE / one.name) == one.digest(digests[one.data]) for one in all_runs())
