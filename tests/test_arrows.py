"""The arrows of the design, by the imports of every file: no circle, and none that runs up."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PACKAGES = ("core", "seg", "classification", "export", "app", "steadyseg")
PRODUCT = {"core", "core/evaluation", "seg", "seg/data", "seg/networks", "seg/street", "export", "app"}
ALLOWED = {
    "core": set(),
    "core/evaluation": {"core"},
    "core/novelty": {"core"},
    "core/training": {"core"},
    "core/robustness": {"core", "core/evaluation"},
    "core/analysis": {"core", "core/evaluation"},
    "seg/street/paint": {"core"},
    "seg/street": {"core", "seg/street/paint"},
    "seg/data": {"core", "core/robustness", "seg/options"},
    "seg/networks": {"core", "seg/options"},
    "seg": {
        "core", "core/evaluation", "core/novelty", "core/robustness", "core/training", "seg/data", "seg/networks",
        "seg/street",
    },
    "seg/own_world": {"core", "core/novelty", "core/robustness", "seg", "seg/data"},
    "classification/data": {"core", "classification/options"},
    "classification/networks": {"core", "classification/options"},
    "classification": {
        "core", "core/evaluation", "core/novelty", "core/robustness", "core/training", "classification/data",
        "classification/networks",
    },
    "export/kernels": {"core"},
    "export": {"core", "export/kernels"},
    "app": {
        "core", "core/novelty", "core/training", "seg", "seg/data", "seg/networks", "classification", "classification/data",
        "classification/networks", "export", "export/kernels",
    },
    "app/sources": {"core", "seg/data", "seg/street", "app"},
    "app/video": {*PRODUCT, "app/sources"},
    "app/evaluation": {*PRODUCT, "core/novelty", "seg/own_world", "classification", "classification/data"},
    "app/in_browser": {*PRODUCT, "app/video"},
    "app/export": {*PRODUCT, "classification", "app/sources", "app/in_browser"},
    "app/bench": {*PRODUCT, "export/kernels", "app/sources", "app/video"},
    "app/robustness": {*PRODUCT, "core/novelty", "core/robustness", "classification", "classification/data", "app/sources"},
    "app/analysis": {
        *PRODUCT, "core/analysis", "core/training", "classification", "classification/data", "classification/networks",
        "app/robustness",
    },
    "app/page": {*PRODUCT, "app/sources", "app/video", "app/in_browser"},
    "app/scale": {*PRODUCT, "app/video"},
    "app/scale/engines": {"core", "app/scale"},
    "app/scale/batch": {*PRODUCT, "app/sources", "app/video", "app/scale", "app/scale/engines"},
    "app/scale/cameras": {*PRODUCT, "app/sources", "app/video", "app/scale", "app/scale/engines"},
    "steadyseg": {
        *PRODUCT, "core/training", "core/robustness", "core/analysis", "export/kernels", "classification",
        "classification/data", "classification/networks", "app/sources", "app/video", "app/export",
    },
}  # fmt: skip
"""Folder -> what its files may import besides each other. `seg/options` and `classification/options` are files that lie below
the rest of their folder: flags, without torch."""
GROUND = ("seg/options", "classification/options")


@cache
def imports() -> dict[str, set[str]]:
    """Every file of the product by its path without ending, with those that it imports."""
    files = {
        path.relative_to(PROJECT).with_suffix("").as_posix()
        for name in PACKAGES
        for path in (PROJECT / name).rglob("*.py")
    }
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, others in found.items():
        for node in ast.walk(ast.parse((PROJECT / f"{name}.py").read_text())):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module, f"{name} imports relatively"
                named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            outside = {one.split(".")[0] for one in named} & {"demos", "tests", "benchmarks"}
            assert not outside, f"{name} imports {outside}"
            others |= {one.replace(".", "/") for one in named} & files - {name}
    return found


def rooms(name: str) -> set[str]:
    """Its folder, and itself where it lies below the rest of it."""
    return {name.rpartition("/")[0]} | {name} & set(GROUND)


def test_no_file_is_in_a_circle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        raise AssertionError(f"files import each other: {' <- '.join(error.args[1])}") from None


def test_imports_follow_the_arrows() -> None:
    wrong = []
    for name, others in imports().items():
        folder = name.rpartition("/")[0]
        allowed = {"core", "core/training"} if name in GROUND else {folder} | ALLOWED[folder]
        wrong += [f"{name} imports {other}" for other in others if not rooms(other) & allowed]
    assert not wrong


def test_the_arrows_that_are_allowed_run_down() -> None:
    TopologicalSorter(ALLOWED).prepare()
