"""Which kind of network a model's name or file is: segmentation or image classification; its header says so."""

from pathlib import Path

from classification.bundled import FOLDER as CLASSIFIERS
from classification.opening import ARCHITECTURE
from core.bundled import find_in
from core.checkpoint import read_meta
from seg.bundled import FOLDER as SEGMENTERS


def find_model(model: str | Path) -> Path:
    """The checkpoint of a bundled name of either kind, or the path itself; InputError lists the known names."""
    return find_in(model, SEGMENTERS, CLASSIFIERS)


def is_classifier(model: str) -> bool:
    """Of a checkpoint or a graph file; InputError where it is neither."""
    if model.endswith(".onnx"):
        from export.onnx_file import read_onnx

        return read_onnx(Path(model)).meta.kind == "classifier"
    return read_meta(find_model(model)).architecture == ARCHITECTURE
