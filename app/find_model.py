"""Which kind of network a model's name or file is: segmentation or image classification; its header says so."""

from collections.abc import Mapping
from pathlib import Path

from classification.opening import ARCHITECTURE
from classification.pretrained import FOLDER as CLASSIFIERS
from core.errors import InputError
from core.method import MethodOptions
from core.model.checkpoint import read_meta
from core.model.pretrained import SUFFIX, find_in, list_checkpoints
from seg.pretrained import FOLDER as SEGMENTERS


def find_model(model: str | Path) -> Path:
    """The checkpoint of a pretrained name of either kind, or the path itself; InputError lists the known names."""
    return find_in(model, SEGMENTERS, CLASSIFIERS)


def is_graph(model: str) -> bool:
    """Whether it names a graph file of `steadyseg export`."""
    return model.endswith(".onnx")


def is_classifier(model: str) -> bool:
    """Of a checkpoint or a graph file; InputError where it is neither."""
    if is_graph(model):
        from export.file.onnx_file import read_onnx

        return read_onnx(Path(model)).meta.kind == "classifier"
    return read_meta(find_model(model)).architecture == ARCHITECTURE


def refuse_classifier(model: str) -> None:
    """InputError for a pretrained name or checkpoint of an image classifier, where frames are to be segmented.

    What is no model at all is refused by whoever opens it; so are graph files, whose header is read there anyway.
    """
    path = list_checkpoints(CLASSIFIERS).get(model, Path(model))
    if path.suffix == SUFFIX and path.is_file() and read_meta(path).architecture == ARCHITECTURE:
        raise InputError(f"{model}: an image classifier, which segments nothing; steadyseg evaluate measures it")


def frame_flags(options: MethodOptions) -> dict[str, bool]:
    """Which flags about frames of a stream were given."""
    return {f"--{name}": getattr(options, name) is not None for name in ("tau", "window", "motion")}


def refuse_flags(model: str, given: Mapping[str, bool]) -> None:
    """InputError for the first flag, by name, that was given although a classifier has no use for it."""
    for name, was_given in given.items():
        if was_given:
            raise InputError(f"{name} is for segmentation networks and {model} is an image classifier; omit it")
