"""Measured numbers in the hand-written sentences of a page, and the tables that must hold them.

A table is generated, or kept from code that is gone."""

import re
from pathlib import Path

TABLE = re.compile(r"<!-- (?:table|kept) \S+ -->\n.*?<!-- end -->", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]+\.md)")
NOT_PROSE = re.compile(r"(?s:```.*?```)|`[^`]*`|\]\([^)]*\)|arXiv [\d.]+|^#.*|[\w.]*\d[x^]\d+", re.MULTILINE)
"""Code, link targets, papers, headings and sizes such as 480x360."""
NUMBER = re.compile(r"(?<![\w.])(?<!\w-)[-+]?\d[\d,]*(?:\.\d+)*(?!\w)")
UNIT = re.compile(r"(?: (?:to|and|or|against) [-+]?[\d.,]+)* ?(?:%|points|MB|ms|times|of \d)")
"""Behind a whole number that was measured; all others are counts and settings."""


def unheld_numbers(page: str, settings: tuple[str, ...], folder: Path | None = None) -> list[str]:
    """The measured numbers of the prose that no table holds, each with the words around it.

    A number with a decimal point counts as measured, and a whole one before a unit. It is held if a table of its
    section has at least as many digits, as it is or as a share of 1. For the lead, and a section without a table, the
    tables of the whole page count. With the page's `folder`, tables of pages that the section links to count too.
    `settings` are phrases whose numbers were chosen and not measured.
    """
    unheld = []
    for number, section in enumerate(re.split(r"(?m)^(?=## )", page)):
        tables = (TABLE.findall(section) if number else []) or TABLE.findall(page)
        for link in LINK.findall(section) if folder else ():
            tables += TABLE.findall((folder / link).read_text())
        held = {figure.strip(",") for figure in NUMBER.findall("\n".join(tables))}
        prose = " ".join(NOT_PROSE.sub("", TABLE.sub("", section)).split())
        for phrase in settings:
            prose = prose.replace(phrase, "")
        for found in NUMBER.finditer(prose):
            figure = found[0].strip(",")
            is_measured = "." in figure or UNIT.match(prose, found.end())
            if is_measured and not any(is_same(figure, one) for one in held):
                unheld.append(prose[max(0, found.start() - 30) : found.end() + 20])
    return unheld


def is_same(figure: str, held: str) -> bool:
    """True if a number is in a table, rounded or in percent; signs are left to the words."""
    digits, held_digits = (len(one.partition(".")[2]) for one in (figure, held))
    try:
        value, exact = (abs(float(one.replace(",", ""))) for one in (figure, held))
    except ValueError:  # a version such as 2026.4.1
        return figure == held
    shown = f"{value:.{digits}f}"
    is_rounded = held_digits >= digits and shown == f"{exact:.{digits}f}"
    return is_rounded or (exact <= 1 and held_digits >= digits + 2 and shown == f"{100 * exact:.{digits}f}")
