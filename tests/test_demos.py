"""The demos and the notebooks run, and the regression toy has its closed form."""

import ast
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from made.classifier import save_classifier, save_pictures
from made.waiting import PATIENCE_S

from demos.toy import (
    TAU,
    Predictive,
    bnn,
    dnn,
    expected_bnn,
    expected_vq_bnn,
    moving_input,
    past_weights,
    vq_bnn,
    weight_variance,
)
from steadyseg.core.prediction import Prediction
from steadyseg.core.temporal import TemporalSmoothing

DEMOS = Path(__file__).parent.parent / "demos"
CLASSIFIER, PICTURES, PICTURE, FOLDER = "a classifier", "its pictures", "a picture to write", "a folder to write"
RUNS = {
    "ensemble_size_curve.py": ([CLASSIFIER, PICTURES, "3"], "3 passes  NLL"),
    "draw_film.py": ([PICTURE], "of the labels change"),
    "label_street.py": ([FOLDER], "50 frames in"),
    "segment_video.py": (["street:7:3", "street-tiny"], "confidence"),
    "smooth_a_timm_network.py": ([], "the passes' disagreement"),
    "smooth_any_network.py": ([], "change their label"),
    "uncertainty_of_an_image.py": (["", "street-tiny"], "disagreement"),
}
TAKE_LONG = "draw_film.py", "smooth_any_network.py", "uncertainty_of_an_image.py"
"""Demos that run for seven seconds or more, each of them in the long tests alone."""


def test_every_demo_is_run_here() -> None:
    assert {path.name for path in DEMOS.glob("*.py")} - {"toy.py"} == set(RUNS)  # a notebook imports toy.py


@pytest.mark.parametrize("name", RUNS)
def test_a_demo_first_says_what_it_does(name: str) -> None:
    """Before its imports, which take seconds."""
    text, first, *_ = ast.parse((DEMOS / name).read_text()).body
    assert isinstance(text, ast.Expr) and ast.unparse(first) == "print(__doc__.partition('\\n\\n')[0], flush=True)"


@pytest.mark.parametrize("name", RUNS)
def test_help_of_a_demo_is_its_text_and_nothing_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(DEMOS / name), run_name="__main__")
    assert not stopped.value.code and f"python demos/{name}" in capsys.readouterr().out and not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in TAKE_LONG else ()) for name in RUNS]
)
def test_a_demo_runs_and_says_what_it_found(name, tmp_path, monkeypatch, capsys):
    arguments, expected = RUNS[name]
    if PICTURE in arguments:
        arguments = [str(tmp_path / "film.webp"), "7", "4"]
    if FOLDER in arguments:
        arguments = [str(tmp_path / "labelled")]
    if CLASSIFIER in arguments:
        made = {
            CLASSIFIER: str(save_classifier(tmp_path / "c.safetensors")),
            PICTURES: str(save_pictures(tmp_path / "d", 2)),
        }
        arguments = [made.get(argument, argument) for argument in arguments]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(DEMOS / name), run_name="__main__")
    said = capsys.readouterr().out
    documented = ast.get_docstring(ast.parse((DEMOS / name).read_text())) or ""
    assert said.startswith(documented.partition("\n\n")[0]) and expected in said
    if name == "smooth_a_timm_network.py":
        shares = [int(line.split("changes ")[1].split("%")[0]) for line in said.splitlines() if "changes" in line]
        assert len(shares) == 4 and max(shares) < 60  # what is smoothed is smoother


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


MANY = 20_000


def assert_means(found: Predictive, expected: Predictive) -> None:
    """The mean over many runs, to within four standard errors."""
    for values, wanted in zip(found, expected, strict=True):
        error = values.std(0) / MANY**0.5
        assert (np.abs(values.mean(0) - wanted) < 4.5 * error + 1e-12).all()


def test_thousands_of_runs_have_the_moments_of_the_closed_form() -> None:
    x = moving_input(12)
    repeated = np.broadcast_to(x, (MANY, len(x)))
    assert_means(vq_bnn(repeated), expected_vq_bnn(x))
    assert_means(bnn(repeated, 5), expected_bnn(x, 5))


def test_the_weights_are_those_of_the_product() -> None:
    import torch

    smoothing, state = TemporalSmoothing(TAU), None
    for step in range(6):
        probs = torch.zeros(1, 6, dtype=torch.float64)
        probs[0, step] = 1.0
        mean, state = smoothing(Prediction(probs, torch.zeros(1, dtype=torch.float64)), state)
        np.testing.assert_allclose(mean.probs[0], past_weights(6, TAU)[step], atol=1e-12)


def test_the_spread_is_of_the_weights_and_of_the_motion() -> None:
    """On a still input the spread is the weights' spread, less the part that moves the mean."""
    still, moving = np.full(40, -10.0), np.linspace(-10.0, -6.0, 40)
    weights = past_weights(40, TAU)[-1]
    alone = weight_variance(still[:1])[0] * (1 - (weights**2).sum())
    assert expected_vq_bnn(still).variance[-1] == pytest.approx(alone)
    assert expected_vq_bnn(moving - moving[-1] - 10.0).variance[-1] > alone
    assert (dnn(moving).variance == 0).all() and np.allclose(expected_bnn(still).mean, -10.0)
