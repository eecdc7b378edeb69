"""Any segmentation network as one that gives logits: its output is recognised, checked and brought to one form."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError, first_line
from steadyseg.core.model.model import Model
from steadyseg.core.predictors import first_tensor
from steadyseg.core.preprocess import Normalize

MAX_CLASSES = 255
"""Labels are bytes, and one byte is void."""
SUM_TOLERANCE = 1e-2
"""Largest deviation from 1 of the sum of probabilities: float16 rounds each to 5e-4."""
SMALLEST = 1e-30
"""Probability that stands for 0 before the logarithm; far above float32's smallest normal number."""
LABELS = (
    "these are labels (an arg-max), and a mean over time needs probabilities; export the network without its last "
    "arg-max or threshold"
)
"""The end of a message about an output that cannot be averaged."""
MAIN = ("out", "logits")
"""Names that torchvision and transformers give to the logits."""
QUERIES = (("class_queries_logits", "masks_queries_logits"), ("pred_logits", "pred_masks"))
"""Names of the class and mask logits of queries, in transformers and in Mask2Former's own code."""


@dataclass(frozen=True)
class OutputForm:
    """The form of a network's output, found by `find_form`."""

    channels_last: bool
    """True for (1, h, w, K), False for (1, K, h, w)."""
    channels: int
    """K of the output. If 1, it is the logit or probability of the second of two classes, as in an alpha mask."""
    is_probability: bool
    """True if softmax, or sigmoid of one channel, was applied already."""
    head_stride: int
    """Size of the network's input over the size of the logits of `ToLogits`: 1, or 2 for an output of half the size or
    less."""
    of_queries: bool = False
    """True for the class logits (1, Q, K + 1) and the mask logits (1, Q, h, w) of queries."""

    @property
    def classes(self) -> int:
        return max(2, self.channels)

    def __str__(self) -> str:
        what = "probabilities" if self.is_probability else "logits"
        how = " in one channel" if self.channels == 1 else ", made of queries' classes and masks" * self.of_queries
        return f"{what} of {self.classes} classes{how}"


class ToLogits(nn.Module):
    """Brings an output of the form to logits (1, K, ceil(h / s), ceil(w / s)). The input is h x w, and s =
    `head_stride`.

    Another size is enlarged or reduced bilinearly. Probabilities become their logarithms, whose softmax gives them
    back. One channel becomes the logits 0 and x of two classes, whose softmax is 1 - sigmoid(x) and sigmoid(x).
    """

    def __init__(self, form: OutputForm, size: tuple[int, int]) -> None:
        """`size`: (h, w) of the network's input where `forward` is not given it."""
        super().__init__()
        self.form, self.size = form, size

    def forward(self, *parts: Tensor) -> Tensor:
        return self.at(self.size, *parts)

    def at(self, picture: tuple[int, int], *parts: Tensor) -> Tensor:
        """Returns the logits for a `picture` of another size (h, w)."""
        form, maps = self.form, parts[-1]
        maps = (maps.permute(0, 3, 1, 2) if form.channels_last else maps).float()
        size = -(-picture[0] // form.head_stride), -(-picture[1] // form.head_stride)
        if tuple(maps.shape[-2:]) != size:
            maps = F.interpolate(maps, size, mode="bilinear", align_corners=False)
        if form.of_queries:
            maps = query_probabilities(parts[0].float(), maps)
        if form.channels == 1:
            first = 1.0 - maps if form.is_probability else torch.zeros_like(maps)
            maps = torch.cat([first, maps], dim=1)
        return maps.clamp_min(SMALLEST).log() if form.is_probability else maps


def query_probabilities(kinds: Tensor, masks: Tensor) -> Tensor:
    """(1, Q, K + 1) class logits and (1, Q, h, w) mask logits of queries -> probabilities (1, K, h, w).

    A class scores the sum over queries of its probability times the mask's (semantic inference of Cheng et al. 2021,
    arXiv 2107.06278, 3.4). The scores of a pixel are no distribution. A sum below 1 leaves belief in no class: all
    classes share it equally (the pignistic probability of Smets & Kennes 1994, Artificial Intelligence 66). A larger
    sum is divided out. The likeliest class stays the same.
    """
    scores = torch.einsum("bqk,bqhw->bkhw", kinds.softmax(-1)[..., :-1], masks.sigmoid())
    total = scores.sum(1, keepdim=True)
    return (scores + (1.0 - total).clamp_min(0.0) / scores.shape[1]) / total.clamp_min(1.0)


class AnyNetwork(nn.Module):
    """A torch module or function as a network (1, 3, h, w) -> logits (1, K, ceil(h / s), ceil(w / s)).

    Its output may be a tensor, torchvision's dictionary, transformers' object or a sequence (see `choose`). Raises
    InputError where it does not run on a picture of `size` (h, w), or its output has no form of `find_form`.
    """

    def __init__(
        self,
        network: Callable[[Tensor], Any],
        size: tuple[int, int],
        normalize: Normalize,
        classes: int | None = None,
        name: str = "",
        device: str = "cpu",
    ) -> None:
        """`classes`: number of classes, by default the output's. `name`: for messages, by default the network's. A
        module is moved to `device` and switched to evaluation."""
        super().__init__()
        self.call = network
        self.fixed_size: tuple[int, int] | None = None
        """(h, w) of all pictures, if their size does not follow the frame."""
        self.to(device).eval()
        set_dropout_active(self, False)  # the mode switches our own dropout
        images = [normalize(picture).to(device) for picture in probes(*size)]
        name = name or getattr(network, "__name__", type(network).__name__)
        try:
            with torch.inference_mode():
                outputs = [tensors_of(network(image)) for image in images]
                again = tensors_of(network(images[0]))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        except Exception as error:  # a stranger's code may raise anything
            is_float32 = all(one.dtype == torch.float32 for one in self.parameters())
            remedy = "give a size that it takes" if is_float32 else "it must compute in float32: network.float()"
            raise InputError(
                f"{name} cannot run on a picture of {size[0]}x{size[1]} ({first_line(error)}); {remedy}"
            ) from error
        self.taken = choose(outputs[0], size, classes, name)
        """Names of the output, or of two outputs of queries."""
        if not all(torch.allclose(again[key], outputs[0][key], 1e-2, 1e-3, equal_nan=True) for key in self.taken):
            raise InputError(
                f"{name} draws random numbers: two outputs for one picture differ. Export it in evaluation mode; in "
                "code, give F.dropout training=self.training, or use nn.Dropout"
            )
        parts = [[output[key].detach().cpu() for key in self.taken] for output in outputs]
        if len(self.taken) == 1:
            self.form = find_form([part for (part,) in parts], size, classes, name)
        else:
            probs = [query_probabilities(kinds.float(), masks.float()) for kinds, masks in parts]
            found = find_form(probs, size, classes or probs[0].shape[1], name)
            self.form = replace(found, is_probability=True, of_queries=True)
        self.head_stride = self.form.head_stride
        self.to_logits = ToLogits(self.form, size)
        self.examples = tuple(torch.zeros(part.shape, dtype=part.dtype) for part in parts[0])
        """Zeros in the shapes and types of the outputs that are taken, for a picture of `size`."""
        left = ", ".join(key for key in outputs[0] if key not in self.taken)[:80]
        self.note = f"of its outputs, {self.taken[0]} was taken, not {left}" if left and len(self.taken) == 1 else ""
        """Describes the choice between several outputs; else empty."""

    def forward(self, image: Tensor) -> Tensor:
        output = tensors_of(self.call(image))
        return self.to_logits.at((image.shape[-2], image.shape[-1]), *(output[key] for key in self.taken))


@dataclass(frozen=True, eq=False)
class GivenModel(Model):
    """A network that is in memory, with the record that a checkpoint would have."""

    given: AnyNetwork

    def network(self) -> nn.Module:
        return self.given


def tensors_of(output: Any) -> dict[str, Tensor]:
    """Returns the tensors of a network's output by name: the key, the attribute, or the place in a sequence."""
    if isinstance(output, Mapping):
        named = dict(output)
    elif isinstance(output, Sequence):
        named = dict(enumerate(output))
    else:
        named = getattr(output, "__dict__", {})
    found = {str(key): value for key, value in named.items() if isinstance(value, Tensor)}
    return {"output": output} if isinstance(output, Tensor) else found or {"output": first_tensor(output)}


def choose(
    outputs: Mapping[str, Tensor], size: tuple[int, int], classes: int | None, name: str = ""
) -> tuple[str, ...]:
    """Returns the names of the class and mask logits of queries, or the name of the logits.

    Names decide first, then the size: of maps with as many classes, a larger one is the main output, and one channel is
    an edge. InputError where several remain: nothing in their values tells an auxiliary head.
    """
    floats = {key: one for key, one in outputs.items() if one.is_floating_point()}
    maps, rows = ([key for key, one in floats.items() if one.ndim == axes] for axes in (4, 3))
    if main := [key for key in MAIN if key in maps]:
        return (main[0],)
    pairs = [pair for pair in QUERIES if floats.keys() >= {*pair}]
    if not pairs and len(maps) == len(rows) == 1 and floats[maps[0]].shape[1] == floats[rows[0]].shape[1]:
        pairs = [(rows[0], maps[0])]
    if pairs:
        return pairs[0]
    found = dict[str, tuple[int, int]]()  # classes and pixels
    for key in maps:
        with contextlib.suppress(InputError):
            shape = tuple(floats[key].shape)
            found[key] = shape[class_axis(shape, size, classes, "")], floats[key][0].numel()
    able = [key for key in found if "aux" not in key.lower()] or [*found]
    able = [key for key in able if found[key][0] > 1] or able
    largest = max((found[key] for key in able), default=(0, 0))
    if len({found[key][0] for key in able}) == 1:
        able = [key for key in able if found[key] == largest]
    if len(able) > 1:
        shown = ", ".join(f"{key[:40]} {tuple(floats[key].shape)}" for key in able[:8])
        raise InputError(
            f"{name}: several outputs can be the logits ({shown}); name one by --logits, or in Python give a function "
            "that returns it alone"
        )
    return (next(iter([*able, *maps, *outputs])),)


def probes(height: int, width: int) -> list[Tensor]:
    """Returns three pictures (1, 3, h, w) uint8 on which the form of an output is found: noise, black and white."""
    noise = torch.randint(0, 256, (1, 3, height, width), generator=torch.Generator().manual_seed(0))
    return [noise.to(torch.uint8), *(torch.full((1, 3, height, width), level, dtype=torch.uint8) for level in (0, 255))]


def find_form(outputs: Sequence[Tensor], size: tuple[int, int], classes: int | None, name: str) -> OutputForm:
    """Returns the form of a network's outputs on `probes` of `size` (h, w); `name` is for messages.

    InputError for labels, for values that are neither logits nor probabilities, and where the class axis is unclear or
    has another length than `classes`.
    """
    shape = tuple(outputs[0].shape)
    shown = f"{name} gives an output of shape {shape}"
    one_plane = len(shape) == 3 or (len(shape) == 4 and 1 in (shape[1], shape[3]))
    if not outputs[0].is_floating_point() or (one_plane and all(map(torch.equal, outputs, map(torch.round, outputs)))):
        raise InputError(f"{shown} of whole numbers: {LABELS}")
    if len(shape) != 4 or shape[0] != 1:
        raise InputError(f"{shown}, expected logits (1, K, h, w) or (1, h, w, K) of K classes for one picture")
    if not all(bool(output.isfinite().all()) for output in outputs):
        raise InputError(f"{shown} that holds NaN or infinity; check its weights, and mean and std")
    axis = class_axis(shape, size, classes, shown)
    in_unit = all(float(output.min()) >= 0.0 and float(output.max()) <= 1.0 + SUM_TOLERANCE for output in outputs)
    sums = (output.float().sum(axis) for output in outputs)
    is_probability = in_unit and (
        shape[axis] == 1 or all(float((total - 1.0).abs().max()) <= SUM_TOLERANCE for total in sums)
    )
    if in_unit and not is_probability:
        raise InputError(
            f"{shown} with values in 0..1 whose sum is not 1, as from a sigmoid for each class. The classes of a "
            "pixel must exclude each other: export the network without its last sigmoid"
        )
    rows = shape[1] if axis == 3 else shape[2]
    return OutputForm(axis == 3, shape[axis], is_probability, 1 if rows > -(-size[0] // 2) else 2)


def class_axis(shape: tuple[int, ...], size: tuple[int, int], classes: int | None, shown: str) -> int:
    """Returns the class axis, 1 or 3: the two other axes have the picture's aspect. InputError where neither or both
    can be, or where the number of classes is wrong."""
    picture = f"{size[0]}x{size[1]}"

    def fits(rows: int, columns: int) -> bool:
        share = rows / size[0]
        return abs(columns - share * size[1]) <= 1.0 + share  # an odd size loses up to a pixel at each halving

    found = [axis for axis, plane in ((1, shape[2:]), (3, shape[1:3])) if shape[axis] <= MAX_CLASSES and fits(*plane)]
    wanted = [axis for axis in found if shape[axis] == classes or (shape[axis] == 1 and classes == 2)]
    if classes is not None and found and not wanted:
        counts = " or ".join(str(max(2, shape[axis])) for axis in found)
        raise InputError(f"{shown}, which is {counts} classes, and {classes} were named; name as many")
    found = wanted or found
    if not found:
        raise InputError(
            f"{shown}, where no axis can be the class axis. The other two do not have the picture's aspect "
            f"({picture}), or there are more than {MAX_CLASSES} classes; expected (1, K, h, w) or (1, h, w, K)"
        )
    if len(found) > 1:  # then only an axis with exactly the picture's aspect
        planes = {1: shape[2:], 3: shape[1:3]}
        found = [one for one in found if planes[one][0] * size[1] == planes[one][1] * size[0]] or found
    if len(found) > 1:
        raise InputError(
            f"{shown}, where the second or the last axis can be the class axis; name the classes, or give a "
            f"picture of another size than {picture}"
        )
    return found[0]
