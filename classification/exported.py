"""The computation of a classifier's graph file: raw pictures in, probabilities and uncertainty out."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout, drawing_dropouts, dropout_calls
from steadyseg.core.prediction import Prediction, entropy
from steadyseg.core.predictors import MonteCarlo, SplitNetwork
from steadyseg.core.preprocess import Normalize
from steadyseg.core.tracing import Signature

OUTPUTS = ("probs", "entropy", "disagreement", "logits")
"""The last output is a tensor inside the graph, from which a proof reads single passes."""


class ExportedClassifier(nn.Module):
    """(image, *masks) -> (probs (B, K), entropy (B,), disagreement (B,), logits (B, N, K)).

    `image` is uint8 (B, s, s, 3) RGB. `probs` is the mean over N dropout passes; `entropy` (of the mean) and
    `disagreement` are shares of ln K, in 0..1. The N passes are one batch of B N pictures, so the graph does not grow
    with N. The part before the first dropout is computed once and repeated. Masks are drawn by the graph, or are inputs
    (B, N, ...), one for each call of a dropout layer in order of use.
    """

    def __init__(
        self,
        network: nn.Module,
        mean: tuple[float, float, float],
        std: tuple[float, float, float],
        samples: int,
        temperature: float,
    ) -> None:
        super().__init__()
        self.network, self.normalize = network.eval(), Normalize(mean, std)
        self.samples, self.temperature = samples, temperature
        self.calls: list[Dropout] = []

    def forward(self, image: Tensor, *masks: Tensor) -> tuple[Tensor, ...]:
        for layer in set(self.calls):
            own = [mask.flatten(0, 1) for mask, call in zip(masks, self.calls, strict=bool(masks)) if call is layer]
            layer.masks = own or None
        logits = self._logits(self.normalize(image.permute(0, 3, 1, 2)))
        one = Prediction.from_logits(logits, self.temperature)
        probs = self._by_pass(one.probs).mean(1)
        total, expected = entropy(probs), self._by_pass(one.member_entropy).mean(1)
        return (
            probs,
            total / one.max_entropy,
            (total - expected).clamp_min(0.0) / one.max_entropy,
            self._by_pass(logits),
        )

    def signature(self, size: int, mask_shapes: Sequence[tuple[int, ...]] = ()) -> Signature:
        """Returns names and examples for pictures of `size` x `size`, any number at once; `mask_shapes` of
        `trace_masks` add the masks as inputs."""
        example = self.example(size)
        masks = [torch.ones(len(example), *shape) for shape in mask_shapes]
        rates = {f"mask_{i:03}": self.calls[i].rate for i in range(len(masks))}
        sizes = {name: {0: "batch"} for name in ("image", *rates)}
        return Signature(
            tuple(sizes), OUTPUTS, (example, *masks), inner=OUTPUTS[3:], free_sizes=sizes, mask_rates=rates
        )

    def pass_by_pass(self, image: Tensor, masks: Sequence[Tensor]) -> dict[str, Tensor]:
        """Computes the outputs except the logits by `core.predictors.MonteCarlo`: N passes one after the other."""
        for layer in set(self.calls):
            own = [mask for mask, call in zip(masks, self.calls, strict=True) if call is layer]
            layer.masks = [mask[:, number] for number in range(self.samples) for mask in own]
        predict = MonteCarlo(self.network, self.samples, self.temperature)
        prediction: Prediction = predict(self.normalize(image.permute(0, 3, 1, 2)))
        largest = prediction.max_entropy
        outputs = (prediction.probs, prediction.entropy / largest, prediction.disagreement / largest)
        return dict(zip(OUTPUTS, outputs, strict=False))

    def example(self, size: int, batch: int = 2) -> Tensor:
        """Returns pictures for tracing."""
        generator = torch.Generator().manual_seed(0)
        return torch.randint(0, 256, (batch, size, size, 3), dtype=torch.uint8, generator=generator)

    def trace_masks(self, size: int) -> list[tuple[int, ...]]:
        """Returns the shapes (N, ...) of one picture's masks in order of use; `forward` takes such masks from now on.

        Empty if nothing is drawn.
        """
        self.calls = []
        with torch.no_grad(), dropout_calls(drawing_dropouts(self.network)) as calls:
            self(self.example(size, batch=1))
        self.calls = [layer for layer, _ in calls]
        return [shape for _, shape in calls]

    def _logits(self, batch: Tensor) -> Tensor:
        if self.samples == 1:
            return self.network(batch)
        if isinstance(self.network, SplitNetwork):
            return self.network.suffix(repeat(self.network.prefix(batch), self.samples))
        return self.network(repeat(batch, self.samples))

    def _by_pass(self, values: Tensor) -> Tensor:
        """(B N, ...) -> (B, N, ...)."""
        return values.unflatten(0, (-1, self.samples))


def repeat(shared: Any, times: int) -> Any:
    """Repeats each picture's part of a prefix's output `times` in a row: (B, ...) -> (B times, ...), also in tuples."""
    if isinstance(shared, Tensor):
        return shared[:, None].expand(-1, times, *shared.shape[1:]).flatten(0, 1)
    return tuple(repeat(part, times) for part in shared) if isinstance(shared, tuple) else shared
