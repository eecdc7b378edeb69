"""The arrows of the design, by the imports of every file: no circle, and none that runs up."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PACKAGES = ("core", "street", "seg", "classification", "export", "runtime", "app", "steadyseg", "studies")
GROUPS = {"CORE": "core core/system core/model".split()}
GROUPS["PRODUCT"] = [
    *GROUPS["CORE"],
    *"app core/evaluation export/file runtime seg seg/data seg/networks street".split(),
]
ARROWS = """
core:
core/system: core
core/model: core core/system
core/evaluation: core
core/familiarity: core core/model
core/training: CORE
core/corruptions: core
street/paint: core
street: core street/paint
seg/data/formats: core core/system
seg/data: core core/corruptions core/system seg/data/formats seg/options
seg/networks: core seg/options
seg: CORE core/evaluation core/familiarity core/training seg/data seg/networks street
seg/familiarity: CORE core/corruptions core/familiarity seg seg/data
classification/data: CORE classification/options
classification/networks: classification/options core
classification: CORE classification/data classification/networks core/corruptions core/evaluation core/familiarity
  core/training
export/file: CORE
export/write: core core/system export/file
runtime/kernels: core core/system
runtime: CORE classification core/evaluation core/familiarity export/file runtime/kernels seg
app: CORE classification classification/data classification/networks core/familiarity export/file runtime
  runtime/kernels seg seg/data seg/data/formats seg/networks
app/train: CORE app classification classification/networks core/training runtime/options seg
app/sources: app core core/system seg/data street
app/video: PRODUCT app/scale/engines app/sources
app/evaluation: PRODUCT app/sources classification classification/data core/familiarity seg/familiarity
app/labelling: PRODUCT app/evaluation app/sources app/video seg/data/formats seg/familiarity
app/in_browser: PRODUCT app/video
app/export: PRODUCT app/evaluation app/in_browser app/sources classification classification/networks core/familiarity
  export/write runtime/kernels
app/page/parts: PRODUCT app/sources app/video
app/page/live: PRODUCT app/page/parts app/sources app/video
app/page/file: PRODUCT app/page/flags app/page/parts app/sources app/video
app/page: PRODUCT app/in_browser app/page/file app/page/live app/page/parts
app/scale: PRODUCT app/video
app/scale/engines: app core core/system
app/scale/batch: PRODUCT app/scale app/scale/engines app/sources app/video
steadyseg: PRODUCT app/export app/sources app/video classification classification/data
"""
"""Folder: what its files may import besides each other. Studies may import all of it."""
ALLOWED = {
    folder: {one for word in words.split() for one in GROUPS.get(word, [word])}
    for folder, words in re.findall(r"^(\S+):(.*(?:\n  .*)*)", ARROWS, re.MULTILINE)
}
GROUND = ("seg/options", "classification/options", "runtime/options", "app/page/flags")
"""Files that lie below the rest of their folder: flags, without torch."""


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
            unnamed = [one for one in named if one.split(".")[0] in PACKAGES and not one.startswith("steadyseg")]
            assert not unnamed, f"{name} imports {unnamed}: a second copy of the module"
            named = [one.removeprefix("steadyseg.") for one in named]
            above = {"demos", "tests"} if name.startswith("studies") else {"demos", "tests", "studies"}
            outside = {one.split(".")[0] for one in named} & above
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


def test_the_product_names_no_study() -> None:
    texts = {path: path.read_text() for path in (PROJECT / "app").rglob("*.py")}
    assert not [str(path) for path, text in texts.items() if "steadyseg.studies" in text]


def test_imports_follow_the_arrows() -> None:
    wrong = []
    for name, others in imports().items():
        folder = name.rpartition("/")[0]
        if name.startswith("studies"):
            continue
        ground = {"core", "core/system", "core/training", "runtime/options"}
        allowed = ground if name in GROUND else {folder} | ALLOWED.get(folder, set())
        wrong += [f"{name} imports {other}" for other in others if not rooms(other) & allowed]
    assert not wrong


def test_the_arrows_that_are_allowed_run_down() -> None:
    TopologicalSorter(ALLOWED).prepare()


def study(name: str) -> str:
    """The study of a file under studies/, `harness` included."""
    return name.split("/")[1]


def test_a_study_imports_no_other_study() -> None:
    pairs = {
        (study(name), study(other))
        for name, others in imports().items()
        if name.startswith("studies/")
        for other in others
        if other.startswith("studies/") and study(other) not in (study(name), "harness", "__init__")
    }
    assert not pairs
