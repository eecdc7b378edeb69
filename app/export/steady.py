"""Any network, steadied: `steady` makes a segmenter of a torch module or function, with the mean over time, motion and
scene cuts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.classes import ClassList, distinct_colors
from steadyseg.core.dropout import has_dropout
from steadyseg.core.errors import InputError, shorten
from steadyseg.core.evaluation.temperature import describe_few
from steadyseg.core.method import Method, MethodKeywords, MethodOptions
from steadyseg.core.model.checkpoint import MAX_MEAN, MIN_STD, CheckpointMeta
from steadyseg.core.options import is_number, is_whole
from steadyseg.core.picture_size import MAX_INPUT_PIXELS, SIZE_MULTIPLE, network_size
from steadyseg.core.preprocess import Normalize
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import choose_device
from steadyseg.export.file.metadata import MAX_SIDE
from steadyseg.runtime.cpu_backend import CpuBackend, OpenNetwork
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.runtime.torch_backend import TorchBackend
from steadyseg.seg.any_network import AnyNetwork, GivenModel
from steadyseg.seg.data.class_file import read_classes
from steadyseg.seg.known_networks import look_up
from steadyseg.seg.of_model import FrameToLogits
from steadyseg.seg.streaming import StreamingSegmenter

Triple = tuple[float, float, float]
DEFAULT_HEIGHT = 384
"""Pixels."""


def steady(
    network: Callable[[Tensor], Any],
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: int | tuple[int, int] | None = None,
    classes: ClassList | Sequence[str] | str | Path | None = None,
    options: MethodOptions = MethodOptions(),  # noqa: B008 (frozen)
    temperature: float = 1.0,
    data: str | Path | None = None,
    risk_class: str | None = None,
    device: str = "auto",
    keep_probs: bool = False,
    **settings: Unpack[MethodKeywords],
) -> Segmenter:
    """Makes a segmenter of any network, whose `step` gives the maps of a frame averaged over the recent frames.

    Args:
        network: Torch module or function (1, 3, h, w) float -> logits or probabilities (1, K, h', w') or (1, h', w',
            K). They may be in a dictionary, a list with an auxiliary head, or transformers' object, also as class and
            mask logits of queries. One channel is an alpha mask: K = 2. A module is moved to `device` and switched to
            evaluation. `YOLO` of ultralytics and pipelines of transformers are taken too.
        mean: RGB mean of the training images, of pixels in 0..1. By default what the network's library says:
            torchvision, transformers, ultralytics, timm, segmentation-models-pytorch.
        std: RGB standard deviation, as `mean`.
        size: Height in pixels of the network's pictures; the width follows each frame's aspect in multiples of 32. Or
            (height, width) of all pictures. By default what transformers says, else 384.
        classes: Names of the K classes, camvid, or a JSON file of `wrap --classes`; by default the library's, else
            class 0, class 1, ...
        options: The method; by default one pass (`vq-dnn`), averaged over time along the motion. The modes `bnn` and
            `vq-bnn` need dropout, which `insert_dropout` adds.
        temperature: Divisor of the logits; `data` fits it instead.
        data: Folder with val/ and valannot/ (of `steadyseg data import`), or street: fits temperature and prediction
            sets, as `steadyseg calibrate` does. `Segmenter.fit` holds them.
        risk_class: Class of which at most 5 % of the pixels of `data` are missed, at the threshold in `fit`.
        device: auto, cpu or cuda.
        keep_probs: Return the mean probabilities with the maps.
        settings: Fields of `MethodOptions`, such as mode="dnn", which override `options`.

    The segmenter's `why` says what this network cannot offer. Raises InputError for a network that does not run on
    `size`, or returns something else, such as labels.
    """
    options = replace(options, **settings)
    place, known = choose_device(device), look_up(network)
    found = mean is None and std is None and known.mean is not None
    mean, std = (known.mean, known.std) if found else (mean, std)
    values = normalisation("mean", mean), normalisation("std", std)
    size = next(one for one in (size, known.size, DEFAULT_HEIGHT) if one is not None)
    height, width = input_size(size)
    classes = read_classes(Path(classes)) if isinstance(classes, str | Path) else classes
    named = None if classes is None else len(classes)
    adapted = AnyNetwork(known.network, (height, width), Normalize(*values), named, device=place.type)
    if classes is None and known.classes and len(known.classes) == adapted.form.classes:
        classes = known.classes
    names = class_list(classes, adapted.form.classes)
    method = replace(options.resolve(), temperature=temperature)
    if not isinstance(size, int):
        adapted.fixed_size = height, width
    meta, fit = CheckpointMeta("any", {}, names, height, width, *values), dict[str, Any]()
    if data is None and (risk_class is not None or options.calibrated):
        raise InputError("risk_class and calibrated=True need labelled data for their fit; give data too")
    if data is not None and (temperature != 1.0 or options.calibrated is False):
        raise InputError("data fits the temperature, so omit temperature and calibrated=False, or omit data")
    if data is not None:  # imported here: only a fit needs it
        from steadyseg.app.evaluation.flags import CalibrateJob
        from steadyseg.app.export.calibrate import fit_given

        job = CalibrateJob("network", Path(data), Path("network"), risk_class=risk_class, device=device)
        given = GivenModel(job.model, Path(job.model), "", meta, {}, {}, adapted, is_file=False)
        fit = fit_given(given, method, job)[1]
        method = replace(method, temperature=fit["temperature"], calibrated=True)
    module = StreamingSegmenter(adapted, *values, height, method)
    origin = f"mean {values[0]} and std {values[1]} are {known.origin}; " if found else ""
    why = f"it runs any network; {origin}{limits(adapted, method, fit)}"
    if place.type != "cpu":
        return Segmenter(TorchBackend(module, meta, place, keep_probs=keep_probs, why=why), fit)
    name = f"torch {torch.__version__.split('+')[0]} fp32"  # the fused kernel computes the rest
    return Segmenter(cpu_backend(name, lambda _, __: TorchNetwork(module), module, meta, keep_probs, why), fit)


def cpu_backend(
    name: str,
    open_network: OpenNetwork,
    module: StreamingSegmenter,
    meta: CheckpointMeta,
    keep_probs: bool,
    why: str,
) -> CpuBackend:
    """Returns a backend with the method, sizes and reference scores of a streaming module."""
    return CpuBackend(
        name,
        open_network,
        module.size,
        meta.classes,
        module.method,
        (meta.height, meta.width),
        head_stride=module.head_stride,
        keep_probs=keep_probs,
        reference=module.head.reference if module.head else None,
        why=why,
    )


class TorchNetwork(FrameNetwork):
    """Torch on the CPU."""

    def __init__(self, module: StreamingSegmenter) -> None:
        self._module, self._network = module, FrameToLogits(module)

    @torch.inference_mode()
    def outputs(self, frame: np.ndarray) -> list[np.ndarray]:
        self._module.switch_dropout()
        logits: Tensor = self._network(torch.from_numpy(frame))
        return [logits[0].float().contiguous().numpy()]


def normalisation(name: str, values: Sequence[float] | None) -> Triple:
    """Returns mean or std as three numbers of pixels in 0..1; InputError for anything else."""
    low, high = (MIN_STD, MAX_MEAN) if name == "std" else (-MAX_MEAN, MAX_MEAN)
    try:
        numbers = [] if values is None else list(values)
    except TypeError:  # a single number
        numbers = []
    if len(numbers) != 3 or not all(is_number(value, low, high) for value in numbers):
        given = "is missing" if values is None else f"is {shorten(values)}"
        raise InputError(
            f"{name} {given}, expected three numbers for red, green and blue in 0..1, by which the network's training "
            "normalised its pictures (ImageNet: mean 0.485 0.456 0.406, std 0.229 0.224 0.225; none: 0 0 0 and 1 1 1)"
        )
    if max(numbers) > 2.0:
        raise InputError(
            f"{name} is {shorten(values)}, which is of pixels in 0..255; divide it by 255 (a network of raw pixels in "
            "0..255: mean 0 0 0, std 0.00392157 three times)"
        )
    red, green, blue = map(float, numbers)
    return red, green, blue


def input_size(size: int | tuple[int, int], name: str = "size") -> tuple[int, int]:
    """Returns (h, w) of the pictures for a network's first test: 4:3 for a height alone. `name`: for messages."""
    if is_whole(size, SIZE_MULTIPLE, MAX_INPUT_PIXELS) and isinstance(size, int):
        return network_size(3, 4, size)
    pair = isinstance(size, tuple) and len(size) == 2 and all(is_whole(one, SIZE_MULTIPLE, MAX_SIDE) for one in size)
    if not (pair and isinstance(size, tuple) and size[0] * size[1] <= MAX_INPUT_PIXELS):
        raise InputError(
            f"{name} is {shorten(size)}, expected a height or (height, width) of {SIZE_MULTIPLE} pixels or more, at "
            f"most {MAX_INPUT_PIXELS} in all"
        )
    return size


def class_list(classes: ClassList | Sequence[str] | None, count: int) -> ClassList:
    """Returns the class list, or makes it of names, by default class 0, class 1, ..."""
    if isinstance(classes, ClassList):
        return classes
    names = tuple(f"class {number}" for number in range(count)) if classes is None else tuple(classes)
    return ClassList(names, distinct_colors(len(names)))


def limits(network: AnyNetwork, method: Method, fit: dict[str, Any]) -> str:
    """Describes the kind of the network's output and the network's limits."""
    notes = [f"its output was taken for {network.form}", *filter(None, [network.note, describe_few(fit)])]
    if not has_dropout(network):
        notes.append("it has no MC dropout, so disagreement is that between frames alone")
    if method.temperature == 1.0:
        notes.append("not calibrated (temperature 1)")
    return "; ".join([*notes, "no familiarity"])
