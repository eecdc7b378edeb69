"""Parts of the documents that studies write: tables and figures."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt


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
