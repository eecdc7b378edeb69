"""A study of familiarity keeps intermediate results in a folder."""

from pathlib import Path

from steadyseg.studies.familiarity.by_network import save
from steadyseg.studies.familiarity.collect import begin


def test_results_of_other_weights_are_dropped_and_those_of_the_same_stay(tmp_path: Path) -> None:
    for left in (["about.pickle"], ["about.pickle", "test.pickle"]):
        save(tmp_path / "test.pickle", "test")
        begin(tmp_path, {"weights": "new"})
        assert sorted(file.name for file in tmp_path.iterdir()) == left
