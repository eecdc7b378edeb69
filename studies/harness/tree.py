"""The list of the product's files in docs/architecture.md, made from the first sentence of each file.

python -m steadyseg.studies.harness.tree
"""

import ast
import re
from itertools import groupby
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENT = PROJECT / "docs" / "architecture.md"
PACKAGES = ("steadyseg", "app", "seg", "classification", "export", "core")
BETWEEN = ("<!-- table tree -->\n", "<!-- end -->")


def files() -> list[Path]:
    """Every Python file of the packages, without the empty `__init__.py` of folders."""
    found = [path.relative_to(PROJECT) for name in PACKAGES for path in (PROJECT / name).rglob("*.py")]
    named = [path for path in found if path.name != "__init__.py" or path.parent.name == "steadyseg"]
    return sorted(named, key=lambda path: (PACKAGES.index(path.parts[0]), path.parent.parts, path.name))


def first_sentence(path: Path) -> str:
    """The first sentence of a file's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse((PROJECT / path).read_text())) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"\.(?: (?=[A-Z])|$)", paragraph)[0]


def tree() -> str:
    """One section a folder in the order of `PACKAGES`, one line a file."""
    lines = []
    for folder, paths in groupby(files(), key=lambda path: path.parent):
        lines += [f"\n**`{folder}/`**\n"]
        lines += [f"- `{path.name}`: {first_sentence(path)}" for path in paths]
    return "\n".join(lines).lstrip() + "\n"


def with_tree(document: str) -> str:
    """The document with the list between its markers made anew."""
    start, end = BETWEEN
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{start}{tree()}{end}", document)


if __name__ == "__main__":
    DOCUMENT.write_text(with_tree(DOCUMENT.read_text()))
