"""Tables and sections of the documents that the studies write."""

from collections.abc import Iterable


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Markdown; empty where there are no lines."""
    titles, body = list(header), [list(line) for line in lines]
    if not body:
        return ""
    rule = ["---"] * len(titles)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, rule, *body))


def section(title: str, words: str, content: str) -> str:
    return f"## {title}\n{words}\n\n{content}" if content else ""
