"""Expectations of docs/studies/analysis and intervals of docs/studies/ablations, against counts by hand."""

from pathlib import Path
from typing import Any

import pytest
import torch

from steadyseg.studies.ablations.bootstrap import paired_bootstrap
from steadyseg.studies.ablations.matrix import ABLATIONS, SEEDS, to_train
from steadyseg.studies.ablations.tables import ablation_table
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


def test_the_paired_bootstrap_finds_a_change_that_pictures_share() -> None:
    generator = torch.Generator().manual_seed(0)
    before = [torch.randn(400, generator=generator, dtype=torch.float64) for _ in SEEDS]
    noise = torch.randn(400, generator=generator, dtype=torch.float64)
    found = paired_bootstrap(before, [one + 0.5 + 0.1 * noise for one in before])
    assert found.mean == pytest.approx(0.5, abs=0.02) and found.low < found.mean < found.high
    expected = 1.96 * 0.1 / 400**0.5
    assert found.high - found.low == pytest.approx(2 * expected, rel=0.15)
    assert len(found.by_seed) == 2 and found == paired_bootstrap(before, [one + 0.5 + 0.1 * noise for one in before])


def test_ablations_are_trained_once_and_shown_where_all_seeds_are_there() -> None:
    names = [f"{variant.name}-{seed}" for variant, seed in to_train()]
    assert len(names) == len(set(names)) and names[:4] == ["none-0", "none-1", "blur2-tanh-0", "blur2-tanh-1"]
    rows = {"nll": "1.000 2.000", "right": "01", "figures": {"nll": 1.5, "accuracy": 0.5, "ece": 0.1}}
    better = {"nll": "0.500 1.500", "right": "11", "figures": {"nll": 1.0, "accuracy": 1.0, "ece": 0.1}}
    record = {f"none-{seed}": {"rows": rows} for seed in SEEDS} | {
        f"blur2-tanh-{seed}": {"rows": better} for seed in SEEDS
    }
    text = ablation_table(ABLATIONS[0], record)
    assert "| Blur ∘ ReLU ∘ tanh | 1.000 | -0.500 (-0.500 to -0.500) | -0.500, -0.500 |" in text
    assert "0.801 | 78.9 | 2.56 |" in text
    assert ablation_table(ABLATIONS[1], record) == ""
