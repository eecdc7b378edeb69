"""The committed rows are of the included checkpoints and of the data here."""

import json
from pathlib import Path

import pytest

from steadyseg.core.model.model import REPLACED
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest
from steadyseg.studies.results.front import SHOWN, front_digest

pytestmark = pytest.mark.slow


def test_the_committed_rows_are_of_these_checkpoints_and_this_data(data_dir: Path) -> None:
    digest = data_digest(data_dir / "camvid")
    included = [name for name in SHOWN if name not in REPLACED]
    decay = Cache(PAGES / "results" / "decay.json")
    assert not [name for name in included if decay.get(name, rests_on(name, digest)) is None]
    front = json.loads((PAGES / "results" / "front.json").read_text())
    assert {name: front[name]["digest"] for name in included} == {name: front_digest(name, digest) for name in included}
