"""The statements on transformers against reports whose answer is known, and the tables of their record."""

from typing import Any

import pytest

from steadyseg.studies.transformers import expectations as looks
from steadyseg.studies.transformers import tables


def row(model: str, unit: str, high: float, side: int = 8) -> dict[str, Any]:
    return {"model": model, "unit": unit, "high": high, "height": side, "width": side, "channels": 4}


def test_eigenvalues_are_compared_seed_by_seed_and_mini_batch_by_mini_batch() -> None:
    eigenvalues = {
        "adamw-vit6-0": [[3.0, -1.0], [9.0, 5.0]],
        "adamw-preresnet18-0": [[4.0, 2.0], [6.0, 4.0]],
        "adamw-vit6-1": [[1.0, -2.0]],
        "adamw-preresnet18-1": [[2.0, -1.0]],
        "adamw-alternet18-0": [[1.0, 1.0], [1.0, 1.0]],
    }
    rows = [{"model": name, "eigenvalues": one} for name, each in eigenvalues.items() for one in each]
    report = {"results": {"rows": rows}}
    found = looks.curvature("vit6", "preresnet18")(report)  # (3 < 3, 7 < 5, 1 < 2)
    assert (found.holds, found.of) == (1, 3)
    assert found.figures == "5, 1 (vit6) against 4, 2 (preresnet18)"
    found = looks.negative("preresnet18", "vit6")(report)
    assert (found.holds, found.of) == (1, 3) and found.figures.endswith("0.25, 0.50 (vit6)")
    assert looks.curvature("alternet18", "preresnet18")(report).of == 2, "a seed that one of them lacks"


def test_a_filter_is_what_stands_between_two_maps_of_one_size() -> None:
    rows = [
        row("adamw-vit6-0", "stem", -1.0),
        row("adamw-vit6-0", "attention1", -2.0),
        row("adamw-vit6-0", "mlp1", -1.5),
        row("adamw-alternet18-0", "stage1.0", -1.0),
        row("adamw-alternet18-0", "stage1.1", 0.0),
        row("adamw-alternet18-0", "stage2.0", -3.0, side=4),
        row("adamw-alternet18-0", "stage2.1", -2.0, side=4),
        row("adamw-vit6-1", "attention1", -4.0),
    ]
    report = {"results": {"rows": rows}}
    lowers = looks.attention_lowers("high", "vit6", looks.difference)(report)
    assert (lowers.holds, lowers.of) == (1, 1) and lowers.figures == "-1.00, from -1.00 to -1.00 (vit6)"
    raises = looks.others_raise("high", "vit6", looks.difference)(report)
    assert (raises.holds, raises.of) == (1, 1)
    assert looks.attention_lowers("high", "alternet18", looks.difference)(report).holds == 0
    assert looks.others_raise("high", "alternet18", looks.difference)(report).of == 1, "stage 1 has no attention"


def test_noise_and_corruptions_are_told_by_what_they_cost() -> None:
    models = ("adamw-vit6-0", "adamw-preresnet18-0")
    bands = [
        {"model": model, "mode": "dnn", "noise_rms": rms, "centre": centre, "accuracy_drop": drop}
        for model, drop in zip(models, (0.1, 0.3), strict=True)
        for rms in (0.02, 0.08, None)
        for centre in (0.1, 0.9)
    ]
    clean = [{"model": model, "accuracy": 0.8} for model in models]
    corrupted = [
        {"model": model, "mode": "dnn", "accuracy": accuracy}
        for model, both in zip(models, ((0.7, 0.5), (0.6, 0.6)), strict=True)
        for accuracy in both
    ]
    report = {"studies": {"bands": {"rows": bands}, "corruptions": {"clean": clean, "rows": corrupted}}}
    found = looks.noise("vit6", "preresnet18", looks.HIGH_BAND)(report)
    assert (found.holds, found.of) == (2, 2) and found.figures == "10.0 (vit6) against 30.0 (preresnet18)"
    found = looks.corruption("vit6", "preresnet18")(report)
    assert (found.holds, found.of) == (1, 2) and found.figures == "20.0 (vit6) against 20.0 (preresnet18)"


def test_accuracies_are_compared_picture_by_picture() -> None:
    def of(right: str) -> dict[str, Any]:
        return {kind: {"images": len(right), "right": f"{int(right, 2):x}"} for kind in ("jpeg", "official")}

    record = {"adamw-vit6-0": of("00110101"), "adamw-preresnet18-0": of("00110001")}
    assert tables.right_of(record["adamw-vit6-0"]["jpeg"]).tolist() == [0, 0, 1, 1, 0, 1, 0, 1]
    line = tables.paired_table(record).splitlines()[-1]
    assert line.startswith("| vit6 - preresnet18 | +12.5 ± 24.5 | +12.5 |")


def test_the_table_of_the_build_up_follows_its_rule() -> None:
    def of(held_out: float) -> dict[str, Any]:
        return {"held_out": {"accuracy": held_out}, "jpeg": {"off": {"accuracy": held_out - 0.1}}}

    record = {f"build-up-{layout}-0": of(value) for layout, value in {"0000": 0.5, "0001": 0.6, "0002": 0.55}.items()}
    lines = tables.build_up_table(record).splitlines()[2:]
    assert [line.split(" | ")[:4] for line in lines] == [
        ["| 0, 0, 0, 0", "0", "50.0", "40.0"],
        ["| 0, 0, 0, 1", "1", "60.0", "50.0"],
        ["| 0, 0, 0, 2", "2", "55.0", "45.0"],
    ]


def test_what_is_listed_and_not_trained_is_said() -> None:
    left = tables.left_table({"adamw-vit6-0": {}})
    assert "`adamw-vit6-1`" in left and "`adamw-vit6-0`" not in left
    assert pytest.approx(len(left.splitlines()) - 2) == len(tables.ROWS) - 1
