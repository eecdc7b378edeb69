"""Consistency along sequences against plain loops, and AUROC against counting all pairs."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.studies.harness.ood_detection import auroc
from steadyseg.studies.robustness.measures.temporal_consistency import TemporalConsistency, relative_confidence

KEYS = ("consistency", "cec", "cec_reference")


def drawn(seed: int, *shape: int) -> Tensor:
    """Random probabilities (S, F, K, ...) whose neighbours often agree."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(shape, generator=generator).cumsum(1)
    return logits.softmax(2)


def slow(probs: np.ndarray, compare: str) -> dict[str, float]:
    """Consistency and CEC by plain loops over sequences and pairs."""
    values = []
    for sequence in probs.astype(np.float64):
        pairs = [(0 if compare == "first" else i - 1, i) for i in range(1, len(sequence))]
        rows = []
        for i, j in pairs:
            p, q = sequence[i], sequence[j]
            rows.append([p.argmax() == q.argmax(), -(p * np.log(q)).sum(), -(q * np.log(p)).mean()])
        values.append(np.mean(rows, axis=0))
    return dict(zip(KEYS, np.mean(values, axis=0), strict=True))


def measured(probs: Tensor, compare: str = "neighbours", parts: int = 1) -> dict[str, float]:
    consistency = TemporalConsistency(probs.shape[2], compare)
    for part in probs.tensor_split(parts):
        consistency.update(part)
    return consistency.result()


@pytest.mark.parametrize("compare", ["neighbours", "first"])
def test_the_means_are_those_of_a_loop_over_pairs_however_batched(compare: str) -> None:
    probs = drawn(1, 23, 31, 10)
    expected = slow(probs.numpy(), compare)
    assert 0.2 < expected["consistency"] < 0.9
    for parts in (1, 4):
        assert measured(probs, compare, parts) == pytest.approx(expected, rel=1e-5)


def test_maps_are_measured_as_the_stream_of_their_frames_is() -> None:
    probs = drawn(3, 1, 5, 4, 6, 7)
    labels = torch.arange(42).view(1, 6, 7) % 5  # 4 is void
    consistency = TemporalConsistency(4, void=4)
    consistency.update(probs, labels)
    stream = StreamingMetrics(4, void=4)
    for i in range(5):
        stream.update(probs[:, i], labels, continues=i > 0)
    assert consistency.result() == pytest.approx({key: stream.result()[key] for key in KEYS}, rel=1e-6)


def test_without_labels_every_pixel_counts_whatever_void_is() -> None:
    probs = drawn(4, 2, 3, 4, 5, 5)
    consistency = TemporalConsistency(4, void=0)
    consistency.update(probs)
    assert consistency.result() == measured(probs)


def test_relative_confidence_is_one_where_right() -> None:
    probs = drawn(5, 50, 1, 6)[:, 0]
    labels = torch.arange(50) % 6
    values = relative_confidence(probs, labels)
    for p, label, value in zip(probs.tolist(), labels.tolist(), values.tolist(), strict=True):
        assert value == pytest.approx(p[label] / max(p))
    assert ((values == 1) == (probs.argmax(1) == labels)).all()
    maps = probs.T.reshape(1, 6, 5, 10)
    assert (relative_confidence(maps, labels.view(1, 5, 10)) == values.view(1, 5, 10)).all()


def slow_auroc(inside: list[float], outside: list[float]) -> float:
    points = sum((o > i) + 0.5 * (o == i) for i in inside for o in outside)
    return points / (len(inside) * len(outside))


@pytest.mark.parametrize(("levels", "shift"), [(0, 0.0), (0, 1.0), (4, 0.5), (2, 0.0), (1, 0.0)])
@pytest.mark.parametrize(("few", "many"), [(1, 1), (1, 40), (57, 83)])
def test_it_is_the_share_of_ordered_pairs(levels: int, shift: float, few: int, many: int) -> None:
    generator = torch.Generator().manual_seed(few)
    inside, outside = torch.randn(few, generator=generator), torch.randn(many, generator=generator) + shift
    if levels:  # many ties
        inside, outside = ((x * levels / 2).round() for x in (inside, outside))
    assert auroc(inside, outside) == slow_auroc(inside.tolist(), outside.tolist())
    assert auroc(outside, inside) == pytest.approx(1 - auroc(inside, outside), abs=1e-15)


def test_the_ends_and_the_middle() -> None:
    low, high = torch.arange(10.0), torch.arange(10.0, 15.0)
    assert auroc(low, high) == 1 and auroc(high, low) == 0 and auroc(low, low) == 0.5
    assert auroc(torch.tensor([-math.inf, 0.0]), torch.tensor([math.inf])) == 1


def test_halves_and_whole_numbers_are_compared_exactly() -> None:
    inside, outside = torch.tensor([2**24]), torch.tensor([2**24 + 1])  # float32 would tie them
    assert auroc(inside, outside) == 1 and auroc(outside, inside) == 0
    assert auroc(torch.tensor([0.5, 0.25], dtype=torch.float16), torch.tensor([0.5])) == 0.75
