"""The sentences of code and documents, and the habits that make a reader read them twice."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("app", "core", "seg", "classification", "export", "runtime", "street", "studies", "demos", "deploy", "tests")
MAX_WORDS = 25
HABITS = {
    "that of": re.compile(r"\b(that|those) of\b"),
    "; None:": re.compile(r"; None:"),
    "Published are": re.compile(r"^Published are"),
    "is said": re.compile(r"\bis said\b"),
    "two semicolons": re.compile(r";[^;]*;"),
    "over 25 words": re.compile(rf"^(?:\S+ ){{{MAX_WORDS}}}\S"),
}
"""Habits by name. A noun left out, a verb left out, an inverted order, a passive, a sentence of several conditions."""
CODE = re.compile(r"`[^`]*`|https?://\S+|\([^()]*(?:\d|\.py|=)[^()]*\)")
"""Code, addresses, and brackets that hold a number, a file or an equation: one word each, or none."""
MARKUP = re.compile(r"(?s:```.*?```)|^ *\|.*|^#.*|^    .*|!?\[(?=[^]]*\]\()|\]\([^)]*\)|\*\*|<!--.*?-->", re.MULTILINE)
"""Code, tables, headings, formulas, and the marks of links and pictures in Markdown."""
END = re.compile(r"(?<=[.!?])\s+(?=\*?[A-Z`\"(])|\n\s*\n|\n(?=\s+\w+: )|\n(?=\s*[-*|] )")
"""Ends of sentences: a stop before a capital or emphasis, an empty line, an entry of an argument, a list item."""


def sentences(path: Path) -> Iterator[str]:
    """Yields the sentences of a Markdown file, or of the docstrings, comments and raised messages of a Python file."""
    source = path.read_text()
    if path.suffix == ".md":
        yield from split(MARKUP.sub("", source))
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from split(node.value.value)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args:
                yield from split(literal(argument))
    yield from split("\n\n".join(comments(source)))


def comments(source: str) -> Iterator[str]:
    """Yields the comments of a source; lines that follow one another are one comment."""
    block, last = [], -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and block:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    if block:
        yield " ".join(block)


def literal(node: ast.expr) -> str:
    """The text of a literal; the values of an f-string are one word each."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
    return ""


def split(text: str) -> Iterator[str]:
    """Yields the sentences of a text, with code and brackets taken out."""
    for sentence in END.split(text):
        plain = " ".join(CODE.sub("x", sentence).split())
        if " " in plain:
            yield plain


def found(paths: list[Path]) -> dict[str, list[str]]:
    """The sentences of these files that have a habit, by habit: `file: sentence`."""
    by_habit: dict[str, list[str]] = {habit: [] for habit in HABITS}
    for path in paths:
        for sentence in sentences(path):
            for habit, pattern in HABITS.items():
                if pattern.search(sentence):
                    by_habit[habit].append(f"{path}: {sentence}")
    return by_habit


def texts(project: Path) -> list[Path]:
    """The documents, cards and code of the project."""
    documents = [project / "README.md", project / "CONTRIBUTING.md", *sorted((project / "docs").rglob("*.md"))]
    return documents + [
        path for kind in ("md", "py") for one in FOLDERS for path in sorted((project / one).rglob(f"*.{kind}"))
    ]


if __name__ == "__main__":  # `make lint`: a long sentence is a warning
    for line in found(texts(Path()))["over 25 words"]:
        print(f"warning: over {MAX_WORDS} words: {line}")
