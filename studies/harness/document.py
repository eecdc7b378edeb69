"""Parts of the documents that studies write: sentences with figures in them, tables, pictures."""

import functools
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt


def fill(text: str, figure: Callable[[str], str]) -> str:
    """The text with every {name} replaced by its figure, so that no sentence outlives what was measured; then
    wrapped."""
    filled = re.sub(r"\{([^{}]+)\}", lambda found: figure(" ".join(found[1].split())), text.strip())
    return "\n\n".join(map(wrap, filled.split("\n\n")))


def wrap(block: str) -> str:
    """A paragraph, or the items of a list, to 150 columns; headings, tables and pictures stay as they are."""
    if block[0] in "|!" or "\n" not in block:
        return block
    if block[0] == "#":
        heading, words = block.split("\n", 1)
        return f"{heading}\n{wrap(words)}"
    items = re.split(r"\n(?=- )", block)
    indent = "  " if block.startswith("- ") else ""
    fit = functools.partial(textwrap.fill, width=150, break_long_words=False, break_on_hyphens=False)
    return "\n".join(fit(" ".join(item.split()), subsequent_indent=indent) for item in items)


def span(values: Sequence[str]) -> str:
    """`least to most` of figures as text that read the same unit behind them; one value where they agree."""
    ordered = sorted(values, key=float)
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Markdown; empty where there are no lines."""
    titles, body = list(header), [list(line) for line in lines]
    if not body:
        return ""
    rule = ["---"] * len(titles)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, rule, *body))


def section(title: str, words: str, content: str) -> str:
    return f"## {title}\n{words}\n\n{content}" if content else ""


matplotlib.use("Agg")


def save_figure(figure: Any, docs: Path, name: str, title: str) -> dict[str, str]:
    """Writes and closes a figure; {title: file name}."""
    figure.savefig(docs / name, dpi=130, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return {title: name}
