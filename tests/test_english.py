"""The sentences of code and documents keep the habits that make them plain."""

from pathlib import Path

import pytest
from english import found, texts

PROJECT = Path(__file__).parent.parent
ALLOWED = {"that of": 0, "; None:": 0, "Published are": 0, "is said": 0, "two semicolons": 0}
"""Sentences that still have a habit. A number may only fall: who mends a sentence lowers it."""


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    return found(texts(PROJECT))


@pytest.mark.parametrize("habit", ALLOWED)
def test_no_more_sentences_have_a_habit_that_makes_a_reader_read_twice(seen: dict[str, list[str]], habit: str) -> None:
    listed = "\n".join(line.removeprefix(f"{PROJECT}/") for line in seen[habit])
    assert len(seen[habit]) == ALLOWED[habit], f"{len(seen[habit])} sentences, {ALLOWED[habit]} are allowed:\n{listed}"
