"""A network whose convolutions have 8-bit inputs and weights, by measured ranges.

The network rounds by PyTorch's `fake_quantize`: PyTorch then computes the values of an int8 network, and OpenVINO
converts it to integer kernels. Jacob et al. 2018 (arXiv 1712.05877), eq. 1: r = S (q - Z). An input has one S and one
Z; weights have one S per channel and Z = 0.

Rounding shifts the mean of a convolution's channels. The shift is measured and taken from the bias (Nagel et al. 2019,
arXiv 1906.04721, section 4.2). It hardly changes labels, but without the correction a shift of the deepest features was
as large as the difference between two roads, and int8 called familiar frames unfamiliar.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from types import MappingProxyType
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.errors import InputError
from steadyseg.core.model.int8_record import WEIGHT_LEVELS

LEVELS = 255

Ranges = Mapping[str, Sequence[float]]
"""By convolution: the least and the greatest value of its input, means over pictures."""
Corrections = Mapping[str, Tensor]
"""By convolution: (C,) what is added to its bias."""
NO_CORRECTIONS: Corrections = MappingProxyType({})
Look = TypeVar("Look")


class Int8Conv(nn.Module):
    """A convolution of any kind with rounded input and weights."""

    scale: Tensor
    zero: Tensor
    bias: Tensor | None

    def __init__(
        self, conv: nn.Conv2d | nn.ConvTranspose2d, least: float, greatest: float, correction: Tensor | None = None
    ) -> None:
        super().__init__()
        least, greatest = min(least, 0.0), max(greatest, 0.0)  # 0 must stay exactly 0, as padding is 0
        self.conv = conv
        self.input_scale = max((greatest - least) / LEVELS, 1e-8)
        self.input_zero = min(max(round(-least / self.input_scale), 0), LEVELS)
        self.axis = int(isinstance(conv, nn.ConvTranspose2d))  # axis of the output's channels
        others = [axis for axis in range(conv.weight.ndim) if axis != self.axis]
        scale = (conv.weight.detach().abs().amax(others) / WEIGHT_LEVELS).clamp_min(1e-8)
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("zero", torch.zeros(len(scale), dtype=torch.int32), persistent=False)
        bias = conv.bias if correction is None else correction.float() + (0.0 if conv.bias is None else conv.bias)
        self.register_buffer("bias", None if bias is None else bias.detach(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        conv = self.conv
        x = torch.fake_quantize_per_tensor_affine(x, self.input_scale, self.input_zero, 0, LEVELS)
        weight = torch.fake_quantize_per_channel_affine(conv.weight, self.scale, self.zero, self.axis, -128, 127)
        if isinstance(conv, nn.ConvTranspose2d):
            padding, more = conv.padding, conv.output_padding
            return F.conv_transpose2d(x, weight, self.bias, conv.stride, padding, more, conv.groups, conv.dilation)  # type: ignore[arg-type]
        return F.conv2d(x, weight, self.bias, conv.stride, conv.padding, conv.dilation, conv.groups)


MAX_ERROR = 0.002
"""Largest rounding error of a convolution, as a share of its output's variance. In an early `camvid-realtime` only two
convolutions exceeded it (0.003 and 0.008; all others stayed below 0.0015). With them in int8, the network lost 0.4
points of accuracy on 24 held-out pictures, without them 0.1."""
ERROR_PICTURES = 8
"""Number of pictures on which the rounding errors are measured."""


@torch.inference_mode()
def measure_ranges(
    network: nn.Module, pictures: Iterable[Tensor], max_error: float = MAX_ERROR
) -> dict[str, tuple[float, float]]:
    """Measures the input range of every convolution that int8 suits, on normalised `pictures` (1, 3, h, w).

    Floating point stays for the first convolution: it reads the picture itself and takes a hundredth of the time (an
    early `camvid-realtime`: 99.68 % of the labels are float32's without it, 99.38 % with it). It also stays where the
    rounding error exceeds `max_error`, such as in a depthwise convolution whose channels differ in range.

    Raises InputError where a value is not finite, or where int8 suits no convolution.
    """
    found: dict[str, list[Tensor]] = {}
    pictures = iter(pictures)
    first = list(islice(pictures, ERROR_PICTURES))

    def note(name: str, _: nn.Module, inputs: tuple[Tensor, ...], __: Tensor) -> None:
        found.setdefault(name, []).append(torch.stack(torch.aminmax(inputs[0])))

    run_watched(network, chain(first, pictures), note)
    means = {name: torch.stack(values).double().mean(0).tolist() for name, values in list(found.items())[1:]}
    if not means or not torch.tensor(list(means.values())).isfinite().all():
        raise InputError("the network's features are no numbers, or it has no convolutions to round")
    ranges = {name: (round(least, 6), round(greatest, 6)) for name, (least, greatest) in means.items()}
    errors = rounding_errors(network, ranges, first)
    if kept := {name: pair for name, pair in ranges.items() if errors[name] <= max_error}:
        return kept
    raise InputError("int8 suits no convolution of this network: each loses too much by rounding")


def rounding_errors(network: nn.Module, ranges: Ranges, pictures: Sequence[Tensor]) -> dict[str, float]:
    """Returns each convolution's error by rounding its input and weights, as a share of its output's variance; a mean
    over channels and pictures. The mean of a channel does not count, since it is corrected.
    """

    def share(error: Tensor, exact: Tensor) -> float:
        of_error, of_output = (values.var((0, 2, 3), correction=0) for values in (error, exact))
        return float((of_error / of_output.clamp_min(1e-12)).mean())

    found = watch_errors(network, ranges, pictures, share)
    return {name: sum(errors) / len(errors) for name, errors in found.items()}


@torch.inference_mode()
def measure_corrections(network: nn.Module, ranges: Ranges, pictures: Iterable[Tensor]) -> dict[str, Tensor]:
    """Measures what rounding takes from the mean of each channel, on normalised `pictures` (1, 3, h, w)."""
    found = watch_errors(network, ranges, pictures, lambda error, _: -error.mean((0, 2, 3)))
    return {name: torch.stack(means).mean(0) for name, means in found.items()}


def watch_errors(
    network: nn.Module, ranges: Ranges, pictures: Iterable[Tensor], look: Callable[[Tensor, Tensor], Look]
) -> dict[str, list[Look]]:
    """Returns `look(error, exact)` of each convolution and picture: what rounding its input and weights adds to its
    exact output."""
    found: dict[str, list[Look]] = {name: [] for name in ranges}

    def compare(name: str, conv: nn.Module, inputs: tuple[Tensor, ...], exact: Tensor) -> None:
        if name in ranges:
            found[name].append(look(Int8Conv(conv, *ranges[name])(inputs[0]) - exact, exact))  # type: ignore[arg-type]

    run_watched(network, pictures, compare)
    return found


def run_watched(
    network: nn.Module, pictures: Iterable[Tensor], look: Callable[[str, nn.Module, tuple[Tensor, ...], Tensor], None]
) -> None:
    """Runs the network and calls `look(name, module, inputs, output)` after each convolution."""
    with ExitStack() as hooks:
        for name, module in network.named_modules():
            if type(module) in (nn.Conv2d, nn.ConvTranspose2d):
                hooks.enter_context(module.register_forward_hook(partial(look, name)))
        for picture in pictures:
            network(picture)


def round_convolutions(network: nn.Module, ranges: Ranges, corrections: Corrections = NO_CORRECTIONS) -> None:
    """Replaces the convolutions that `ranges` names by `Int8Conv`; InputError for one that the network lacks, and for a
    correction of another size."""
    modules = dict(network.named_modules())
    for name, (least, greatest) in ranges.items():
        parent, _, leaf = name.rpartition(".")
        conv, correction = modules.get(name), corrections.get(name)
        if type(conv) not in (nn.Conv2d, nn.ConvTranspose2d):
            found = f"the network has no convolution {name!r}"
        elif correction is not None and len(correction) != conv.out_channels:  # type: ignore[union-attr]
            found = f"{len(correction)} corrections of {name!r}, which has {conv.out_channels} channels"  # type: ignore[union-attr]
        else:
            setattr(modules[parent], leaf, Int8Conv(conv, least, greatest, correction))  # type: ignore[arg-type]
            continue
        raise InputError(f"int8: {found}; make it again by steadyseg calibrate --int8")
