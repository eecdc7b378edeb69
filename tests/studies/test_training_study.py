"""The study of training recipes: its table in order, and a tiny table from training to document."""

import json
import re
from pathlib import Path

import pytest
import torch
from made.trainings import TINY_SEGMENTATION, boxes_folder, camvid_names
from refusals import refusal

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS
from steadyseg.seg.options import AugmentOptions
from steadyseg.studies.training import __main__ as study
from steadyseg.studies.training import recipes
from steadyseg.studies.training import tables as document
from steadyseg.studies.training.measure import HeldOut
from steadyseg.studies.training.recipes import RECIPES, Recipe, Row, all_rows


def test_what_a_row_needs_is_trained_before_it() -> None:
    names = [row.name for row in all_rows()]
    assert len(set(names)) == len(names) == sum(len(recipe.seeds) for recipe in RECIPES)
    for row in all_rows():
        assert all(names.index(need) < names.index(row.name) for need in row.needs())


def test_nothing_in_the_table_trains_on_what_robustness_is_measured_by() -> None:
    words = {word for recipe in RECIPES for flag in recipe.flags for word in re.split("[=,]", flag)}
    assert not words & set(BENCHMARK_CORRUPTIONS) and {name for r in RECIPES for name in r.seen} <= set(
        AugmentOptions().corruptions
    )
    assert all(set(recipe.seen) == words_of(recipe) for recipe in RECIPES)


def words_of(recipe: Recipe) -> set[str]:
    told = next((flag for flag in recipe.flags if flag.startswith("corruptions=")), "=")
    return set(told.split("=")[1].split(",")) & set(AugmentOptions().corruptions)


@pytest.mark.long
def test_a_table_is_trained_measured_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """58 pictures, 40 of them held out; the second row is taught by the first and begins with it."""
    data = boxes_folder(tmp_path / "data", 58 * [range(11)], background=11, names=camvid_names())
    first = Recipe("base", "nothing", epochs=1)
    second = Recipe("after", "all", ("--init", "{base-0}", "--config", "teacher={base-0}"), epochs=1)
    monkeypatch.setattr(recipes, "BASE", (*TINY_SEGMENTATION, "evaluate_every=0", "--device", "cpu"))
    table = [Row(first, 0), Row(second, 0)]
    monkeypatch.setattr(study, "all_rows", lambda: table)
    monkeypatch.setattr(document, "RECIPES", (first, second))
    monkeypatch.setattr(document, "all_rows", lambda: table)
    page = tmp_path / "training"
    page.mkdir()
    monkeypatch.setattr("steadyseg.studies.harness.tables.PAGES", tmp_path)
    monkeypatch.setattr("steadyseg.studies.harness.pages.PAGES", tmp_path)
    monkeypatch.setattr(study, "RECORD", page / "record.json")
    (page / "README.md").write_text("Before.\n<!-- table plain -->\n<!-- end -->\nAfter.\n")
    torch.set_num_threads(1)
    runs = tmp_path / "runs"
    study.run_all(data, runs, None)
    before = (runs / "after-0" / "figures.json").stat().st_mtime_ns
    study.run_all(data, runs, None)  # all of it is there
    assert (runs / "after-0" / "figures.json").stat().st_mtime_ns == before
    study.collect(runs)
    record = json.loads((page / "record.json").read_text())
    assert record["after-0"]["rows"]["images"] == 40 and set(record["after-0"]["rows"]["corrupted"])
    text = (page / "README.md").read_text()
    assert text.startswith("Before.") and "| `after` | all | 1 | 1 |" in text and text.endswith("After.\n")
    steady = record["after-0"]["rows"]["consistency"]
    assert 0 < steady <= 1 and "| ECE | consistency |" in text and f" {100 * steady:.1f} |" in text


def test_rows_of_different_pictures_are_not_compared() -> None:
    found = {"base-0": {"digest": "1-slice"}, "base-1": {"digest": "2-slice"}}
    document.refuse_mixed(found)
    assert "different pictures" in refusal(document.refuse_mixed, found | {"after-0": {"digest": "1-other"}})


def test_it_measures_on_the_held_out_stretches(tmp_path: Path) -> None:
    names = camvid_names(around=1)
    held = HeldOut(boxes_folder(tmp_path, len(names) * [range(1, 3)], background=0, names=names))
    assert held.names == names[1:9] + names[11:23] + names[25:45]
