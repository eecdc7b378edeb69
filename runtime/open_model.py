"""Opens any model by name: pretrained models, checkpoints and graph files, of segmentation networks and classifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from steadyseg.classification.pretrained import ARCHITECTURE
from steadyseg.classification.pretrained import BUILDERS as CLASSIFIERS
from steadyseg.classification.pretrained import FOLDER as CLASSIFIER_FOLDER
from steadyseg.core.errors import InputError
from steadyseg.core.method import Method, MethodKeywords, MethodOptions, PassOptions
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.model import Model, find_in, read_model
from steadyseg.core.options import Every
from steadyseg.core.segmenter import Segmenter
from steadyseg.export.file.onnx_file import OnnxFile, read_onnx
from steadyseg.runtime.choose import RunOptions, TakeNetwork
from steadyseg.runtime.choose import backend as make_backend
from steadyseg.runtime.every import carried
from steadyseg.runtime.open_file import require_stream
from steadyseg.runtime.options import BackendName, PrecisionName
from steadyseg.seg.pretrained import BUILDERS as SEGMENTERS
from steadyseg.seg.pretrained import FOLDER as SEGMENTER_FOLDER

FOLDERS = (SEGMENTER_FOLDER, CLASSIFIER_FOLDER)


def is_graph(name: str | Path) -> bool:
    """Returns True for the name of a graph file of `steadyseg export`."""
    return str(name).lower().endswith(".onnx")


def open_model(name: str | Path) -> Model | OnnxFile:
    """Reads a model once: a pretrained name, a .safetensors file, or an .onnx file of `steadyseg export`.

    Raises InputError for anything else.
    """
    return read_onnx(Path(name)) if is_graph(name) else open_checkpoint(name)


def open_checkpoint(name: str | Path) -> Model:
    """Reads a pretrained name or a .safetensors file of either kind; InputError for anything else."""
    return read_model(name, FOLDERS, {**SEGMENTERS, **CLASSIFIERS})


def find_model(name: str | Path) -> Path:
    """Returns the checkpoint of a pretrained name of either kind, or the path itself; InputError lists the names."""
    return find_in(name, *FOLDERS)


def is_classifier(model: Model | OnnxFile) -> bool:
    """Returns True for an image classifier, False for a segmentation network."""
    return model.meta.architecture == ARCHITECTURE if isinstance(model, Model) else model.meta.kind == "classifier"


def refuse_classifier(meta: CheckpointMeta, name: str) -> None:
    """Raises InputError for an image classifier, which cannot segment frames."""
    if meta.architecture == ARCHITECTURE:
        raise InputError(f"{name}: an image classifier, which segments nothing; steadyseg evaluate measures it")


def open_segmenter(
    model: str | Path,
    options: MethodOptions = MethodOptions(),  # noqa: B008 (frozen)
    *,
    members: Sequence[str | Path] = (),
    size: int | None = None,
    backend: BackendName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    keep_probs: bool = False,
    every: Every = 1,
    take: TakeNetwork | None = None,
    **method: Unpack[MethodKeywords],
) -> Segmenter:
    """Opens a pretrained name, a .safetensors file or an .onnx file of `steadyseg export --stateful`.

    Args:
        options: The method.
        members: Further checkpoints; with them the model is a deep ensemble.
        size: Height in pixels of the network's input.
        every: Run the network on every N-th frame, and warp its maps along the motion to the others. "auto": where the
            picture asks for it, at most 4 frames apart. "live": in a thread of its own.
        take: Returns networks that were compiled before.
        method: Fields of `MethodOptions`, such as mode="dnn", which override `options`.

    Raises InputError for options that the model cannot fulfil: a graph file has only the method of its export.
    """
    others = tuple(open_checkpoint(name) for name in members)
    run = RunOptions(backend, precision, device, size, keep_probs, others, every)
    return make_segmenter(open_model(model), replace(options, **method), run, take)


def make_segmenter(
    model: Model | OnnxFile, options: MethodOptions, run: RunOptions, take: TakeNetwork | None = None
) -> Segmenter:
    """Makes a segmenter of an opened model; see `open_segmenter`."""
    method = resolve_method(model, options, run.members)
    fit = {} if run.members else model.meta.fit_in_use(method)
    return Segmenter(carried(make_backend(model, method, run, take), run.every), fit)


def resolve_method(model: Model | OnnxFile, options: MethodOptions, members: Sequence[Model] = ()) -> Method:
    """Returns the method that runs: a graph file has one method, an ensemble has no fitted temperature."""
    if isinstance(model, Model):
        refuse_classifier(model.meta, model.name)
        return options.resolve(replace(model.meta, calibration={}, familiarity={}) if members else model.meta)
    if members:
        raise InputError(f"{model.path}: a graph file holds one network; use the checkpoints instead")
    require_stream(model)
    options.require(model.meta.method, model.path.name)
    return model.meta.method


def frame_flags(options: PassOptions) -> dict[str, bool]:
    """Returns the flags that only make sense for streams; True: the flag was given."""
    return {f"--{name}": getattr(options, name) is not None for name in ("tau", "motion", "average")}


def refuse_flags(model: str, given: Mapping[str, bool]) -> None:
    """Raises InputError with the first given flag, since none of the flags applies to a classifier."""
    for name, was_given in given.items():
        if was_given:
            raise InputError(f"{name} is for segmentation networks and {model} is an image classifier; omit it")
