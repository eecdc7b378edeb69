"""The public face: the names of `steadyseg`, how fast it is imported, and the front page's snippet."""

import ast
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

import steadyseg

PROJECT = Path(__file__).parent.parent
PUBLIC = """
    Blur ConformalScores Dropout Ensemble ExportJob Frame HubModel InputError Maps Method MethodOptions MonteCarlo
    Normalize OnePass InsertionPoint
    PrependedLayer Prediction Prob Segmenter Source SpatialSmoothing StreamingMetrics Street
    TemperatureScan TemporalSmoothing __version__ draw_overlay draw_uncertainty insert_dropout
    insert_smoothing open_classification open_classifier open_model open_segmenter
    forward_passes open_source prediction_sets read_ahead run_export running_mean segment set_dropout_active steady
    subsampling_points
"""


def test_the_public_names_are_these() -> None:
    assert sorted(steadyseg.__all__) == sorted(PUBLIC.split()) == dir(steadyseg)


def test_every_public_name_resolves() -> None:
    for name in steadyseg.__all__:
        value = getattr(steadyseg, name)
        assert name == "__version__" or value.__name__ == name
        assert getattr(steadyseg, name) is value  # found once, then kept


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = steadyseg.no_such_name


def test_type_checkers_read_the_same_names_from_the_same_modules() -> None:
    tree = ast.parse((PROJECT / "steadyseg/__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        (name.asname, node.module) for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names
    }
    assert told == set(steadyseg._MODULES.items())


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, cwd=PROJECT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_brings_nothing_heavy() -> None:
    loaded = run_python("import sys, steadyseg; print(*sys.modules)").split()
    assert not {"torch", "numpy", "cv2", "gradio", "app", "core", "seg"} & set(loaded)


@pytest.mark.slow
def test_no_module_is_loaded_under_a_second_name() -> None:
    """`except InputError` would miss the class of a second copy."""
    loaded = set(run_python("import sys; from steadyseg import *; print(*sys.modules)").split())
    assert "steadyseg.app.open_model" in loaded and "steadyseg.export.file.onnx_file" in loaded
    assert not {"app", "core", "seg", "classification", "export", "studies"} & loaded


def test_nothing_of_the_product_imports_its_face() -> None:
    for folder in ("app", "core", "seg", "classification", "export"):
        for path in (PROJECT / folder).rglob("*.py"):
            assert "steadyseg import" not in path.read_text(), path


def test_demos_use_public_names_alone() -> None:
    ours = {"app", "core", "seg", "classification", "export", "studies", "tests"}
    for path in (PROJECT / "demos").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {module.split(".")[0] for module in modules} & ours, path


def test_the_front_page_is_short() -> None:
    assert (PROJECT / "README.md").stat().st_size < 7000


@pytest.mark.slow
def test_the_front_pages_snippet_runs() -> None:
    snippet = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)[0]
    assert len([line for line in snippet.splitlines() if line]) <= 6
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(snippet, "README.md", "exec"), {})
    lines = said.getvalue().splitlines()
    assert len(lines) == 25 and all(re.fullmatch(r"\d\.\d\d s: .*% .*unsure", line) for line in lines)
