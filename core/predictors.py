"""Predictors turn a batch into a `Prediction`: one pass, N dropout passes that share their prefix, or an ensemble."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from steadyseg.core.dropout import has_dropout
from steadyseg.core.errors import InputError
from steadyseg.core.prediction import Prediction, mean_prediction


@runtime_checkable
class SplitNetwork(Protocol):
    """A network that can be cut before its first dropout layer: network(x) == suffix(prefix(x))."""

    def prefix(self, x: Tensor) -> Any: ...

    def suffix(self, shared: Any) -> Tensor: ...


def first_tensor(output: Any) -> Tensor:
    """Returns the tensor of an output: itself, the entry `out` or `logits` of a dictionary, the attribute `logits`, or
    the first of a sequence. InputError for anything else."""
    if isinstance(output, Mapping):
        output = next((output[key] for key in ("out", "logits") if key in output), output)
    output = getattr(output, "logits", output)
    if isinstance(output, Sequence) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        keys = f" with {', '.join(map(str, output))}" if isinstance(output, Mapping) else ""
        raise InputError(
            f"the network gives a {type(output).__name__}{keys}, expected a tensor of logits, {{'out': ...}}, or an "
            "object with logits; pass a function that returns the logits"
        )
    return output


class Predictor(nn.Module):
    """A network and the divisor of its logits, the temperature."""

    def __init__(self, network: nn.Module, temperature: float | Tensor = 1.0) -> None:
        super().__init__()
        self.network: Any = network
        self.temperature: float | Tensor = temperature


class OnePass(Predictor):
    """softmax(network(x) / temperature): one member."""

    def forward(self, batch: Tensor) -> Prediction:
        return Prediction.from_logits(first_tensor(self.network(batch)), self.temperature)


class MonteCarlo(Predictor):
    """The mean of N dropout passes: softmax per pass, then the mean of the probabilities (MC dropout).

    A `SplitNetwork` runs its prefix once; with the published dropout places that is 22 % of the work of a pass.
    """

    def __init__(self, network: nn.Module, samples: int, temperature: float | Tensor = 1.0) -> None:
        super().__init__(network, temperature)
        if samples < 1:
            raise InputError(f"the number of dropout samples must be 1 or more, got {samples}")
        if samples > 1 and not (has_dropout(network) or _draws_by_torch(network)):
            warnings.warn(
                "MonteCarlo: the network has no dropout that is on, so all passes are equal and disagreement is 0; "
                "insert_dropout adds layers, and torch's own draw in training mode alone",
                stacklevel=2,
            )
        self.samples = samples

    def forward(self, batch: Tensor) -> Prediction:
        logits = forward_passes(self.network, batch, self.samples)
        *_, mean = running_mean(Prediction.from_logits(first_tensor(one), self.temperature) for one in logits)
        return mean


def _draws_by_torch(network: nn.Module) -> bool:
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    return any(isinstance(module, kinds) and module.p > 0 and module.training for module in network.modules())


def forward_passes(network: nn.Module, batch: Tensor, samples: int) -> Iterator[Any]:
    """Yields the network's output in each of `samples` passes; a `SplitNetwork` runs its prefix once."""
    if not isinstance(network, SplitNetwork):
        yield from (network(batch) for _ in range(samples))
        return
    shared = network.prefix(batch)
    yield from (network.suffix(shared) for _ in range(samples))


def running_mean(members: Iterable[Prediction]) -> Iterator[Prediction]:
    """The mean of the first 1, 2, ... members; memory does not grow with their number."""
    mean: Prediction | None = None
    for count, member in enumerate(members, start=1):
        mean = member if mean is None else mean.blend(member, 1.0 / count)
        yield mean


class Ensemble(nn.Module):
    """Networks of one architecture trained from different seeds, in one module (deep ensemble)."""

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        if len(members) < 2:
            raise InputError(f"an ensemble needs two or more networks, got {len(members)}")
        self.members = nn.ModuleList(members)
        self.head_stride: int = getattr(members[0], "head_stride", 1)


class AllMembers(Predictor):
    """The mean of every member's softmax (Lakshminarayanan et al. 2017, arXiv 1612.01474): a pass for each member."""

    def forward(self, batch: Tensor) -> Prediction:
        return mean_prediction(
            [Prediction.from_logits(first_tensor(member(batch)), self.temperature) for member in self.network.members]
        )


class OneMember(Predictor):
    """One member drawn at random for every call, so that temporal smoothing averages an ensemble at one pass per frame.
    The draw is by torch's generator (VQ-BNN, arXiv 1907.05911: the temporally smoothed ensemble).
    """

    def forward(self, batch: Tensor) -> Prediction:
        drawn = int(torch.randint(len(self.network.members), ()))
        return Prediction.from_logits(first_tensor(self.network.members[drawn](batch)), self.temperature)
