"""The notebooks run from top to bottom at a tiny size, carry their outputs, and import public names and studies
alone."""

import ast
import json
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

DEMOS = Path(__file__).parent.parent / "demos"
TINY = {
    "temporal": "FRAMES, PASSES = 3, (2,)",
    "regression": "STEPS, RUNS = 20, 500",
    "spatial": "PICTURES, PASSES = 20, 2",
    "why": "PICTURES, BATCHES, BATCH = 8, 2, 2",
}
"""What stands after the cell of parameters here."""
NOTEBOOKS = sorted(DEMOS.glob("*.ipynb"))


def test_there_is_one_for_each_paper_and_one_for_its_toy() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["regression", "spatial", "temporal", "why"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pictures_are_kept_and_public_names_and_studies_alone_are_used(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run it from top to bottom"
    kept = [output for cell in cells for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in kept)
    assert not any(output.get("name") == "stderr" or output["output_type"] == "error" for output in kept)
    known = {"steadyseg", "toy", "numpy", "torch", "matplotlib", "pathlib", "time"}
    for cell in cells:
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= known


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.setenv("PYTHONPATH", str(DEMOS.parent))
    notebook = nbformat.read(path, as_version=4)
    place = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ()))
    tiny = TINY[path.stem]
    if path.stem in ("spatial", "why"):
        tiny += f"\nDATA = {str(request.getfixturevalue('data_dir') / 'cifar10')!r}"
    notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(tiny))
    client = nbclient.NotebookClient(
        notebook, timeout=int(PATIENCE_S), kernel_name="python3", resources={"metadata": {"path": DEMOS}}
    )
    client.execute()
    drawn = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs if "data" in out]
    assert any("image/png" in out["data"] for out in drawn)
