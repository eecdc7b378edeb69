"""The command that makes every figure again: what it owns, what it says is due, and that it goes on."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from steadyseg.app.cli import read_flags
from steadyseg.app.commands import STEADYSEG, find_command
from steadyseg.core.errors import CheckFailed
from steadyseg.seg.data.held_out import CAMVID_STRETCHES
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.studies.familiarity.by_network import save
from steadyseg.studies.familiarity.collect import begin
from steadyseg.studies.figures import __main__ as figures
from steadyseg.studies.figures.by_hand import BY_HAND
from steadyseg.studies.figures.step import Step, fit_split
from steadyseg.studies.figures.steps import all_steps
from steadyseg.studies.harness.study import PAGES, Cache

DIGESTS = ("digest", "rests_on", "weights")


def places(found: Any, path: str = "") -> Iterator[str]:
    """Keys, with / between them, that lead to every digest in a record."""
    for key, value in found.items() if isinstance(found, dict) else ():
        if key in DIGESTS and isinstance(value, str):
            yield f"{path}{key}"
        yield from places(value, f"{path}{key}/")


def test_every_record_is_of_one_step_or_made_by_hand() -> None:
    owners = list(BY_HAND)
    for step in all_steps():
        place = step.place.removeprefix("docs/records/")
        ending = "*" if place.endswith(":") else "/*"
        owners += {place.format(name, name) + ending for name in step.networks}
    for file in sorted(PAGES.rglob("*.json")):
        if file != figures.MINUTES:
            for place in list(places(json.loads(file.read_text()))) or [""]:
                name = f"{file.relative_to(PAGES)}:{place}"
                assert sum(fnmatch(name, owner) for owner in owners) == 1, name


def test_every_command_of_a_step_is_one() -> None:
    for step in all_steps():
        for module, *words in step.lines(step.networks, Path("data")):
            assert find_spec(module)
            if module == "steadyseg.app.cli":
                program, command, rest = find_command(words, STEADYSEG)
                read_flags(program, command, rest)


def make_step(tmp_path: Path, kept: str) -> Step:
    """A step whose command copies a record with the digest `kept`."""
    source, record = tmp_path / "source.json", tmp_path / "record.json"
    source.write_text(json.dumps({"street-tiny": {"digest": kept}}))
    copy = f"json.tool {source} {record}"
    return Step("copy", ["street-tiny"], f"{record}:{{}}", lambda *_: "data-weights-1.5", [copy])


def test_a_step_runs_once_and_fails_where_its_record_is_of_something_else(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "MINUTES", tmp_path / "minutes.json")
    step, given = make_step(tmp_path, "data-weights-1.5"), (["street-tiny"], tmp_path, {})
    assert not figures.run([step], *given, 0.0) and step.state("street-tiny", {}) == "missing"
    assert figures.run([step], *given, 1.0) and step.state("street-tiny", {}) == "done"
    assert figures.read_minutes()["copy"]["street-tiny"]["minutes"] < 1
    assert not figures.run([step], *given, 1.0)
    assert replace(step, beside=["other"]).state("street-tiny", {}) == "missing"
    with pytest.raises(CheckFailed, match=r"street-tiny is stale: fit 1\.5, now 1\.75"):
        figures.run([replace(step, wanted=lambda *_: "data-weights-1.75")], *given, 1.0)


def test_fits_are_of_the_stretches_that_a_training_held_out(tmp_path: Path) -> None:
    opened = read_segmenter("street-tiny")
    names = [name for stretch in CAMVID_STRETCHES for name in stretch]
    for held, split in ((names, "held-out"), (names[1:], "test"), (40, "test")):
        path = tmp_path / "network.safetensors"
        opened.with_record(replace(opened.meta, training={"held_out": held})).save(path)
        assert fit_split(str(path)) == split


def test_two_commands_that_measure_at_the_same_time_keep_each_others_rows(tmp_path: Path) -> None:
    first, second = Cache(tmp_path / "record.json"), Cache(tmp_path / "record.json")
    first.put("a", "1", {"x": 1.0}, {})
    second.put("b", "2", {"x": 2.0}, {})
    kept = Cache(tmp_path / "record.json")
    assert kept.get("a", "1") == {"x": 1.0} and kept.get("b", "2") == {"x": 2.0}


def test_results_of_other_weights_are_dropped_and_those_of_the_same_stay(tmp_path: Path) -> None:
    for left in (["about.pickle"], ["about.pickle", "test.pickle"]):
        save(tmp_path / "test.pickle", "test")
        begin(tmp_path, {"weights": "new"})
        assert sorted(file.name for file in tmp_path.iterdir()) == left
