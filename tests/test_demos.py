"""The demos run as their first lines say, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMOS = Path(__file__).parent.parent / "demos"
RUNS = {
    "segment_video.py": (["street:7:3", "street-tiny"], "confidence"),
    "smooth_any_network.py": ([], "change their label"),
    "uncertainty_of_an_image.py": (["", "street-tiny"], "disagreement"),
}


def test_every_demo_is_run_here() -> None:
    assert {path.name for path in DEMOS.glob("*.py")} == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_demo_runs_and_says_what_it_found(name: str) -> None:
    arguments, expected = RUNS[name]
    done = subprocess.run([sys.executable, str(DEMOS / name), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
