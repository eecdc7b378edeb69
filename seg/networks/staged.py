"""Base of the papers' networks: encoder stages, decoder stages and a head, with dropout layers between the stages."""

from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor, nn

from steadyseg.core.dropout import Dropout
from steadyseg.core.errors import InputError
from steadyseg.core.stages import Stage

MAX_CHANNELS = 512
"""Most channels of the first stage: eight times the published number."""


class Flow(NamedTuple):
    """The current map, and what the encoder stages left for decoder stages that have not run yet, shallowest first."""

    x: Tensor
    skips: tuple[Tensor, ...] = ()


class StagedNetwork(nn.Module):
    """(B, 3, h, w) normalised image -> (B, K, h, w) logits, by stages that turn a `Flow` into the next `Flow`.

    forward(x) == suffix(prefix(x)); N dropout passes share `prefix`, which runs once.
    """

    def __init__(
        self,
        encoder: Iterable[nn.Module],
        decoder: Iterable[nn.Module],
        head: nn.Conv2d,
        rate: float,
        places: Iterable[str],
    ) -> None:
        """`places`: names of the stages with a dropout layer of this rate after them; at rate 0 no stage has a
        layer."""
        super().__init__()
        encoder, decoder = list(encoder), list(decoder)
        self.encoder_depth = len(encoder)
        names = stage_names(len(encoder), len(decoder))
        for place in places:
            if place not in names:
                raise InputError(f"unknown dropout place {place!r}; choose from {', '.join(names)}")
        self.stages = nn.ModuleList([*encoder, *decoder])
        has_dropout = [rate != 0 and name in places for name in names]
        self.dropouts = nn.ModuleList([Dropout(rate) if has else nn.Identity() for has in has_dropout])
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        return self.suffix(self.prefix(x))

    def prefix(self, x: Tensor) -> tuple[int, Flow]:
        """Runs the stages up to the first dropout layer that draws; returns (stages done, flow before that layer)."""
        flow = Flow(x)
        for done, (stage, dropout) in enumerate(zip(self.stages, self.dropouts, strict=True), start=1):  # noqa: B007
            flow = stage(flow)
            if isinstance(dropout, Dropout) and dropout.draws:
                break
        return done, flow

    def suffix(self, shared: tuple[int, Flow]) -> Tensor:
        """Turns the result of `prefix` into logits (B, K, h, w): the random part, which may run any number of times."""
        done, flow = shared
        flow = flow._replace(x=self.dropouts[done - 1](flow.x))
        for stage, dropout in zip(self.stages[done:], self.dropouts[done:], strict=True):
            flow = stage(flow)
            flow = flow._replace(x=dropout(flow.x))
        logits: Tensor = self.head(flow.x)
        return logits

    def named_stages(self) -> dict[str, Stage]:
        """Output of each stage, before its dropout."""
        names = stage_names(self.encoder_depth, len(self.stages) - self.encoder_depth)
        points = [Stage(stage, lambda flow: flow.x) for stage in self.stages]
        return dict(zip(names, points, strict=True))


def stage_names(encoder: int, decoder: int) -> list[str]:
    """Stages by name, numbered as in the published layouts: enc1..encE, then dec(E+1)..dec(E+D)."""
    return [f"enc{n}" for n in range(1, encoder + 1)] + [f"dec{n}" for n in range(encoder + 1, encoder + decoder + 1)]


def require_layout(num_classes: int, channels: int) -> None:
    """Raises InputError for fewer than two classes, or a first stage without channels or with too many."""
    if num_classes < 2:
        raise InputError(f"a network needs two or more classes, got {num_classes}")
    if not 1 <= channels <= MAX_CHANNELS:
        raise InputError(f"channels of the first stage must be 1..{MAX_CHANNELS}, got {channels}")
