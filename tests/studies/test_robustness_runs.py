"""The robustness studies that ship: when each is run again, and the tables over several seeds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from steadyseg.studies.harness.reports import data_digests, known_digest
from steadyseg.studies.robustness.__main__ import PAGE, ood_videos
from steadyseg.studies.robustness.corruptions import means_of
from steadyseg.studies.robustness.runs import GROUPS, SEEDS, all_runs
from steadyseg.studies.robustness.seed_tables import compare, corruption_mean, seeds_table, success


def report(nll: float, smooth: float) -> dict[str, Any]:
    """Two networks, two types; the second network's success rate is missing."""

    def rows(name: str, values: list[float]) -> list[dict[str, Any]]:
        about = {"model": name, "mode": "dnn", "samples": 1}
        return [
            {**about, "type": kind, "severity": severity, "accuracy": 0.5, "nll": value * severity, "ece": 0.1}
            for kind, value in zip("ab", values, strict=True)
            for severity in (1, 3)
        ]

    clean = [{"model": name, "mode": "dnn", "samples": 1} for name in ("plain", "smooth")]
    attacked = {**clean[0], "attack": "pgd", "eps_levels": 2.0, "attack_success_rate": nll / 10}
    return {
        "studies": {
            "corruptions": {"clean": clean, "rows": rows("plain", [nll, nll]) + rows("smooth", [smooth, smooth + 1])},
            "attacks": {"rows": [attacked]},
        }
    }


def test_only_the_15_common_types_count_in_the_means() -> None:
    clean = {"model": "plain", "mode": "dnn", "samples": 1}

    def row(kind: str, error: float) -> dict[str, Any]:
        return {**clean, "type": kind, "error": error, "nll": 10 * error, "ece": error / 2}

    found = means_of(clean, [row("fog", 0.1), row("fog", 0.3), row("snow", 0.4), row("saturate", 0.9)])
    assert found["types"]["fog"]["error"] == pytest.approx(0.2) and found["types"]["saturate"]["nll"] == 9.0
    assert found["mean_error"] == pytest.approx(0.3) and found["mean_ece"] == pytest.approx(0.15)
    assert means_of(clean, [row("saturate", 0.9)])["mean_nll"] is None


def test_a_figure_is_the_mean_over_types_at_the_severity_of_all_seeds() -> None:
    assert corruption_mean(report(1.0, 2.0), "smooth dnn", "nll") == 3 * 2.5
    assert (
        success(report(1.0, 2.0), "plain dnn", "pgd") == 0.1 and success(report(1.0, 2.0), "smooth dnn", "pgd") is None
    )


def test_the_change_is_counted_seed_by_seed() -> None:
    records = [report(1.0, 0.5), report(2.0, 1.0), report(3.0, 3.5)]  # plain 3, 6, 9; smooth 3, 4.5, 12
    told = compare(records, "smooth dnn", "plain dnn", lambda r, n: corruption_mean(r, n, "nll"))
    assert told == "6.500 ± 4.822 (+0.500 ± 2.291, 1 of 3)"
    assert compare(records, "plain dnn", "plain dnn", lambda r, n: corruption_mean(r, n, "nll")) == "6.000 ± 3.000"
    assert compare(records, "smooth dnn", "plain dnn", lambda r, n: success(r, n, "pgd")) == "-"
    table = seeds_table(records)
    assert "| smooth dnn |" in table and "6.500 ± 4.822" in table and len(table.splitlines()) == 4


def test_a_run_is_made_again_when_anything_it_depends_on_changes(tmp_path: Path) -> None:
    weights = tmp_path / "w.safetensors"
    save_file({"weight": torch.ones(2)}, weights)
    run = next(run for run in all_runs(("elsewhere/a.mp4",)) if run.options.ood)
    run = replace(run, group=replace(run.group, models=(str(weights),)))
    known = run.digest("data")
    moved = replace(run, options=replace(run.options, ood=("here/a.mp4",)))
    assert moved.digest("data") == known
    assert replace(run, options=replace(run.options, seed=7)).digest("data") != known
    assert replace(run, studies=("bands",)).digest("data") != known
    assert run.digest("other") != known
    save_file(
        {"weight": torch.ones(2), "novelty.means": torch.ones(3)}, weights, {"note": "the header alone, and no weight"}
    )
    assert run.digest("data") == known
    save_file({"weight": torch.zeros(2)}, weights)
    assert run.digest("data") != known


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_group_has_a_whole_run_and_what_is_repeated_has_all_seeds(group: Any) -> None:
    mine = [run for run in all_runs(()) if run.group is group and "calibrated" not in run.name]
    assert mine[0].studies == () and [run.options.seed for run in mine] == list(SEEDS if group.repeated else SEEDS[:1])
    assert all(run.studies == group.repeated for run in mine[1:])
    assert len({run.name for run in all_runs(())}) == len(all_runs(()))


def test_the_committed_studies_are_of_these_checkpoints_and_this_data(data_dir: Path) -> None:
    digests = data_digests(data_dir)
    for run in all_runs(ood_videos(data_dir)):
        assert known_digest(PAGE / run.name) == run.digest(digests[run.data]), run.name
