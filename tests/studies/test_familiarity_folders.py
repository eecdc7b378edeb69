"""Several studies of familiarity keep intermediate results in one folder."""

from pathlib import Path

from steadyseg.studies.familiarity.by_network import save
from steadyseg.studies.familiarity.collect import begin


def test_new_weights_leave_the_results_of_other_studies(tmp_path: Path) -> None:
    for name in ("test", "alarm"):
        save(tmp_path / f"{name}.pickle", name)
    begin(tmp_path, {"weights": "new"})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["about.pickle", "alarm.pickle"]
    save(tmp_path / "test.pickle", "test")
    begin(tmp_path, {"weights": "new"})
    assert (tmp_path / "test.pickle").exists()
