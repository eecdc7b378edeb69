"""Documents for contributors are true, and the sentences of code and documents keep plain habits."""

import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from english import found, texts

import steadyseg

PROJECT = Path(__file__).parent.parent
CONTRIBUTING = (PROJECT / "CONTRIBUTING.md").read_text()


def test_the_version_is_the_same_everywhere() -> None:
    (newest, *_) = re.findall(r"^## (\S+), \d{4}-\d\d-\d\d$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    written = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    cited = yaml.safe_load((PROJECT / "CITATION.cff").read_text())["version"]
    assert newest == written == cited == version("steadyseg") == steadyseg.__version__


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`([\w/]+/(?:[\w./]+)?)(?:`|: (?=\w+`))", CONTRIBUTING))))
def test_contributing_names_files_that_exist(place: str) -> None:
    assert (PROJECT / place).exists()


@pytest.mark.parametrize(("place", "name"), re.findall(r"`([\w/]+)\.py: (\w+)`", CONTRIBUTING))
def test_contributing_names_objects_that_exist(place: str, name: str) -> None:
    module = place if place.startswith("tests/") else f"steadyseg/{place}"
    assert hasattr(importlib.import_module(module.replace("/", ".")), name)


def test_hooks_and_ci_call_what_is_there() -> None:
    hooks = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff-check", "ruff-format", "mypy"]
    jobs = yaml.safe_load((PROJECT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = re.findall(r"^(\w[\w-]*):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    made = [command.removeprefix("make ") for command in commands if command.startswith("make ")]
    assert made == ["lint", "test"] and set(made) <= set(targets)
    whole = re.findall(r"^(?:\w+=\w+ )*make (\S+)$", (PROJECT / ".ci" / "run").read_text(), re.MULTILINE)
    assert whole == ["lint", "test", "unit"], "an hour on two cores has no room for the long tests"


@pytest.mark.parametrize(("bytes_", "code"), [(8_000_000, 0), (8_000_001, 1)])
def test_a_tracked_file_over_the_limit_is_refused(tmp_path: Path, bytes_: int, code: int) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(bytes_)
    subprocess.run(["git", "add", "large.bin"], cwd=tmp_path, check=True)
    script = [sys.executable, str(PROJECT / ".ci" / "tracked_size.py")]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code and ("large.bin" in done.stdout) == bool(code), done


def test_no_process_of_ours_imports_from_the_folder_in_use() -> None:
    """`python -c` and `python -m` put it first on the path, and a `cv2.py` that lies there would run."""
    folders = ("app", "core", "seg", "classification", "export", "runtime", "street")
    lines = [
        line
        for folder in folders
        for path in (PROJECT / folder).rglob("*.py")
        for line in path.read_text().splitlines()
    ]
    started = [line for line in lines if "sys.executable," in line]
    assert len(started) >= 2 and all('sys.executable, "-P"' in line for line in started), started


ALLOWED = {"that of": 0, "; None:": 0, "Published are": 0, "is said": 0, "two semicolons": 0}
"""Sentences that still have a habit. A number may only fall: who mends a sentence lowers it."""


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    return found(texts(PROJECT))


@pytest.mark.parametrize("habit", ALLOWED)
def test_no_more_sentences_have_a_habit_that_makes_a_reader_read_twice(seen: dict[str, list[str]], habit: str) -> None:
    listed = "\n".join(line.removeprefix(f"{PROJECT}/") for line in seen[habit])
    assert len(seen[habit]) == ALLOWED[habit], f"{len(seen[habit])} sentences, {ALLOWED[habit]} are allowed:\n{listed}"
