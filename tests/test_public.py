"""The public face: the names of `steadyseg`, how fast it is imported, its keywords and its refusals."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S
from refusals import refusal

import steadyseg
from steadyseg.core.method import MethodKeywords, MethodOptions

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


def test_paths_are_texts_or_paths(tmp_path: Path) -> None:
    """`open_model` of a Path, and `open_classification` and `ExportJob` of a text, ended in an AttributeError."""
    (checkpoint,) = PROJECT.glob("seg/checkpoints/street-tiny.safetensors")
    for kind in (str, Path):
        assert steadyseg.open_model(kind(checkpoint)).meta.classes
        assert "no such folder" in refusal(steadyseg.open_classification, kind(tmp_path / "no"), "val")
        job = steadyseg.ExportJob(str(checkpoint), kind(tmp_path))
        assert str(tmp_path) in refusal(steadyseg.run_export, job)


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
    assert "steadyseg.runtime.open_model" in loaded and "steadyseg.export.file.onnx_file" in loaded
    assert not {"app", "core", "seg", "classification", "export", "runtime", "street", "studies"} & loaded


def test_nothing_of_the_product_imports_its_face() -> None:
    for folder in ("app", "core", "seg", "classification", "export", "runtime", "street"):
        for path in (PROJECT / folder).rglob("*.py"):
            assert "steadyseg import" not in path.read_text(), path


def test_demos_use_public_names_alone() -> None:
    ours = {"app", "core", "seg", "classification", "export", "runtime", "street", "studies", "tests"}
    for path in (PROJECT / "demos").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {module.split(".")[0] for module in modules} & ours, path


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ("open_segmenter('street-tiny', device='cuda')", "use device cpu or auto"),
        ("open_segmenter('street-tiny', device='cuda', backend='openvino')", "runs on the CPU, got device cuda"),
        ("open_segmenter('street-tiny', backend='torch', precision='int8')", "backend openvino for precision int8"),
        ("open_segmenter('street-tiny', backend='openvino', precision='fp16')", "backend torch for precision fp16"),
        ("open_segmenter('street-tiny', backend='openvino', precision='int8')", "precision int8: street-tiny"),
        ("open_segmenter('street-tiny', backend='openvino', members=['street-tiny'])", "omit backend openvino"),
        ("open_segmenter('street-tiny', backend='onnxruntime')", "steadyseg export"),
        ("open_segmenter('street-tiny', device='gpu')", "unknown device 'gpu'; choose from auto, cpu, cuda"),
        ("open_segmenter('street-tiny', backend='torch', precision='fp_16')", "unknown precision 'fp_16'"),
        ("open_segmenter('street-tiny', size=200_000)", "use a smaller size"),
        ("open_segmenter('street-tiny', calibrated=True)", "omit calibrated"),
        ("open_classifier('cifar10-resnet18-plain', mode='bnn')", "or members for a deep ensemble"),
        ("open_classifier('cifar10-resnet18-plain', backend='openvino')", "got backend openvino"),
        ("steady(lambda x: -x, mean=[0] * 3, std=[1] * 3, device='cuda')", "use device cpu or auto"),
        ("steady(lambda x: -x, mean=[0] * 3, std=[1] * 3, size=32, data='street', risk_class='Hut')", "risk class Hut"),
        (
            "MethodOptions(mode='dnn').require(Method('bnn'), 'f.onnx')",
            "omit mode or export it again: steadyseg export",
        ),
    ],
)
def test_what_python_refuses_is_said_in_its_own_words(call: str, asked: str) -> None:
    """Flags are named as parts of a command alone."""
    import torch

    if "cuda" in call and torch.cuda.is_available():
        pytest.skip("a GPU is here")
    message = refusal(eval, call, vars(steadyseg) | {name: getattr(steadyseg, name) for name in steadyseg.__all__})
    assert asked in message and "--" not in re.sub(r"steadyseg [^;,]*", "", message)


def test_keywords_of_a_method_are_its_options() -> None:
    assert MethodKeywords.__annotations__.keys() == MethodOptions.__dataclass_fields__.keys()
    options = steadyseg.MethodOptions(mode="vq-dnn", tau=4.0)
    assert str(steadyseg.open_segmenter("street-tiny", options, mode="dnn", tau=None).method) == "dnn"
    assert str(steadyseg.open_segmenter("street-tiny", motion=False, tau=3.0).method) == "vq-dnn, tau 3"
    assert list(steadyseg.open_classifier("cifar10-resnet18-mc-smooth", mode="bnn", samples=2).methods) == ["bnn"]
    network = steadyseg.steady(lambda x: -x, mean=[0] * 3, std=[1] * 3, size=32, mode="dnn")
    assert str(network.method) == "dnn"
    with pytest.raises(TypeError, match="modus"):
        steadyseg.open_segmenter("street-tiny", modus="dnn")  # type: ignore[call-arg]
