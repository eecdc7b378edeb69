"""The demos run as their first lines say."""

import ast
import runpy
import sys
from pathlib import Path

import pytest
from made.classifier import save_classifier, save_pictures

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in TAKE_LONG else ()) for name in RUNS]
)
def test_a_demo_runs_and_says_what_it_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
