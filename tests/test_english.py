"""The sentences of code and documents keep the habits that make them plain."""

from pathlib import Path

import pytest
from english import HABITS, found

PROJECT = Path(__file__).parent.parent
FOLDERS = ("app", "core", "seg", "classification", "export", "studies", "demos", "deploy", "tests")
ALLOWED = {"that of": 0, "; None:": 0, "Published are": 0, "is said": 0, "two semicolons": 0, "over 25 words": 0}
"""Sentences that still have a habit. A number may only fall: who mends a sentence lowers it."""


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    documents = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").rglob("*.md"))]
    cards = [path for folder in FOLDERS for path in sorted((PROJECT / folder).rglob("*.md"))]
    code = [path for folder in FOLDERS for path in sorted((PROJECT / folder).rglob("*.py"))]
    return found([*documents, *cards, *code])


@pytest.mark.parametrize("habit", HABITS)
def test_no_more_sentences_have_a_habit_that_makes_a_reader_read_twice(seen: dict[str, list[str]], habit: str) -> None:
    listed = "\n".join(line.removeprefix(f"{PROJECT}/") for line in seen[habit])
    assert len(seen[habit]) == ALLOWED[habit], f"{len(seen[habit])} sentences, {ALLOWED[habit]} are allowed:\n{listed}"
