"""The import arrows of the design: app -> seg, classification, export -> core -> torch."""

import ast
from pathlib import Path

import pytest

ALLOWED = {
    "core": set(),
    "seg": {"core"},
    "classification": {"core"},
    "export": {"core"},
    "app": {"core", "seg", "classification", "export"},
}
PROJECT = Path(__file__).parent.parent


def imported_packages(package: str) -> set[str]:
    found = set()
    for path in (PROJECT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, f"{path} imports relatively"
                found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_follow_the_arrows(package: str) -> None:
    ours = imported_packages(package) & {*ALLOWED, "demos", "tests"}
    assert ours - {package} <= ALLOWED[package]
