"""The streaming metrics against closed forms and a slow second implementation."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.risk_coverage import RiskCoverage

VOID = 11
CLASSES = 11


def measured(probs: Tensor, labels: Tensor, void: int | None = VOID, cutoff: float = 0.9) -> dict:
    metrics = StreamingMetrics(probs.shape[1], void, cutoff=cutoff)
    metrics.update(probs, labels)
    return metrics.result()


def slow_metrics(probs: Tensor, labels: Tensor, void: int | None = VOID, cutoff: float = 0.9) -> dict:
    """The definitions once more: NumPy, loops over bins and classes, all samples kept."""
    table = np.moveaxis(probs.numpy(), 1, -1).reshape(-1, probs.shape[1])
    truth = labels.numpy().reshape(-1)
    table, truth = table[truth != void], truth[truth != void].astype(int)
    classes, total = table.shape[1], len(truth)
    confidence, predicted = table.max(1), table.argmax(1)
    right = predicted == truth
    certain = confidence > cutoff
    p_true = table[np.arange(total), truth].astype(np.float64)
    one_hot = np.zeros((total, classes))
    one_hot[np.arange(total), truth] = 1.0
    iou, iou_certain = ([slow_iou(k, truth[s], predicted[s]) for k in range(classes)] for s in (truth >= 0, certain))
    return {
        "valid_samples": total,
        "nll": float(-np.log(np.maximum(p_true, 1e-12)).mean()),
        "accuracy": float(right.mean()),
        "miou": float(np.mean([x for x in iou if x is not None])),
        "iou": iou,
        "ece": slow_ece(confidence, right, 10),
        "ece_15": slow_ece(confidence, right, 15),
        "ece_signed": float(confidence.astype(np.float64).mean() - right.mean()),
        "ece_reference": slow_reference_ece(confidence, right),
        "reliability": [slow_bin(confidence, right, i / 10, (i + 1) / 10) for i in range(10)],
        "brier": float(((one_hot - table) ** 2).sum(1).mean()),
        "acc_90": float(right[certain].mean()) if certain.any() else None,
        "iou_90": float(np.mean([x for x in iou_certain if x is not None])) if certain.any() else None,
        "unc_90": float((~right & ~certain).sum() / (~right).sum()) if (~right).any() else None,
        "freq_90": float(certain.mean()),
        "consistency": None,
        "label_consistency": None,
        "consistency_pairs": 0,
        "change_agreement": None,
        "change_agreement_frozen": None,
        "cec": None,
        "cec_reference": None,
        **ranked(confidence, right),
        "class_pixels": [int((truth == k).sum()) for k in range(classes)],
    }


def ranked(confidence: np.ndarray, right: np.ndarray) -> dict:
    """As tests/core/test_risk_coverage.py proves it."""
    ranking = RiskCoverage()
    ranking.update(torch.from_numpy(confidence), torch.from_numpy(right))
    return ranking.result()


def slow_iou(k: int, truth: np.ndarray, predicted: np.ndarray) -> float | None:
    both, either = (truth == k) & (predicted == k), (truth == k) | (predicted == k)
    return float(both.sum() / either.sum()) if (truth == k).any() else None


def slow_ece(confidence: np.ndarray, right: np.ndarray, bins: int) -> float:
    ece = 0.0
    for i in range(bins):
        inside = (confidence > i / bins) & (confidence <= (i + 1) / bins)
        if inside.any():
            ece += inside.mean() * abs(right[inside].mean() - confidence[inside].astype(np.float64).mean())
    return ece


def slow_reference_ece(confidence: np.ndarray, right: np.ndarray) -> float:
    ece = 0.0
    for i in range(10):
        counted = (confidence > i / 10) & (confidence <= (i + 1) / 10)
        summed = (confidence >= i / 10) & (confidence < (i + 1) / 10)
        if counted.any():
            mean = confidence[summed].astype(np.float64).sum() / (counted.sum() + 1e-7)
            ece += counted.mean() * abs(right[counted].mean() - mean)
    return ece


def slow_bin(confidence: np.ndarray, right: np.ndarray, lower: float, upper: float) -> dict:
    inside = (confidence > lower) & (confidence <= upper)
    return {
        "lower": lower,
        "upper": upper,
        "count": int(inside.sum()),
        "accuracy": float(right[inside].mean()) if inside.any() else None,
        "confidence": float(confidence[inside].astype(np.float64).mean()) if inside.any() else None,
    }


def assert_equal_results(given: object, expected: object, relative: float = 1e-6, where: str = "result") -> None:
    if isinstance(expected, dict):
        assert isinstance(given, dict) and given.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_equal_results(given[key], value, relative, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(given, list) and len(given) == len(expected), where
        for i, value in enumerate(expected):
            assert_equal_results(given[i], value, relative, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert given == pytest.approx(expected, rel=relative, abs=1e-12), where
    else:  # counts and None
        assert given == expected, where


def dirichlet(seed: int, shape: tuple[int, ...] = (3, 40, 50), concentration: float = 0.3) -> tuple[Tensor, Tensor]:
    """Random probabilities (B, K, h, w) with a maximum anywhere in 1/K..1, labels that follow them or are void."""
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet([concentration] * CLASSES, size=shape).astype(np.float32)
    drawn = (probs.cumsum(-1) < generator.random((*shape, 1))).sum(-1)
    labels = np.where(generator.random(shape) < 0.15, VOID, drawn.clip(0, CLASSES - 1))
    return torch.from_numpy(np.moveaxis(probs, -1, 1).copy()), torch.from_numpy(labels.astype(np.uint8))


def with_confidence(confidence: np.ndarray) -> Tensor:
    """(N, 11) with class 0 at exactly this confidence; the rest shared evenly."""
    probs = np.repeat((1 - confidence[:, None]) / 10, CLASSES, axis=1).astype(confidence.dtype)
    probs[:, 0] = confidence
    return torch.from_numpy(probs)


def neighbours_of_tenths(dtype: type) -> np.ndarray:
    tenths = np.array([i / 10 for i in range(1, 11)], dtype)
    below, above = np.nextafter(tenths, dtype(0)), np.nextafter(tenths[:-1], dtype(1))
    return np.concatenate([tenths, below, above])


@pytest.mark.parametrize("concentration", [0.03, 0.3, 3.0])
def test_random_predictions_score_as_in_the_slow_implementation(concentration: float) -> None:
    probs, labels = dirichlet(1, concentration=concentration)
    assert_equal_results(measured(probs, labels), slow_metrics(probs, labels))


def test_absent_classes_have_no_iou_and_do_not_enter_the_mean() -> None:
    probs, labels = dirichlet(2)
    labels[(labels == 3) | (labels == 7)] = VOID
    result = measured(probs, labels)
    assert_equal_results(result, slow_metrics(probs, labels))
    assert [k for k, value in enumerate(result["iou"]) if value is None] == [3, 7]
    assert [k for k, pixels in enumerate(result["class_pixels"]) if pixels == 0] == [3, 7]


def test_chunking_does_not_matter() -> None:
    probs, labels = dirichlet(3, shape=(6, 20, 30))
    whole = measured(probs, labels)
    for sizes in ([1] * 6, [4, 2], [1, 5]):
        metrics = StreamingMetrics(CLASSES, VOID)
        for part, label in zip(probs.split(sizes), labels.split(sizes), strict=True):
            metrics.update(part, label)
        assert_equal_results(metrics.result(), whole, relative=1e-12)


def test_layout_does_not_matter() -> None:
    probs, labels = dirichlet(4)
    as_table = probs.movedim(1, -1).reshape(-1, CLASSES)
    assert_equal_results(measured(as_table, labels.flatten()), measured(probs, labels), relative=1e-8)
    channels_last = probs.contiguous(memory_format=torch.channels_last)
    assert_equal_results(measured(channels_last, labels), measured(probs, labels), relative=1e-8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_tensors_score_as_cpu_tensors() -> None:
    probs, labels = dirichlet(4)
    assert_equal_results(measured(probs.cuda(), labels.cuda()), measured(probs, labels), relative=1e-9)


def test_uniform_predictions() -> None:
    labels = torch.arange(CLASSES).repeat_interleave(torch.arange(1, CLASSES + 1))  # 1 of class 0, 2 of class 1, ...
    result = measured(torch.full((len(labels), CLASSES), 1 / CLASSES), labels)
    accuracy = 1 / 66  # ties go to class 0
    assert result["nll"] == pytest.approx(math.log(CLASSES), rel=1e-6)
    assert result["brier"] == pytest.approx(1 - 1 / CLASSES, rel=1e-6)
    assert result["accuracy"] == pytest.approx(accuracy)
    assert result["ece"] == result["ece_15"] == pytest.approx(1 / CLASSES - accuracy, rel=1e-6)
    assert result["ece_signed"] == pytest.approx(1 / CLASSES - accuracy, rel=1e-6)
    assert (result["acc_90"], result["iou_90"], result["freq_90"], result["unc_90"]) == (None, None, 0, 1)


def test_a_class_ruled_out_costs_the_clamped_nll() -> None:
    result = measured(torch.tensor([[1.0, 0.0]]), torch.tensor([1]), void=None)
    assert result["nll"] == pytest.approx(-math.log(1e-12)) and result["brier"] == 2


def test_brier_keeps_its_digits_where_predictions_are_saturated() -> None:
    probs = torch.tensor([[1 - 2**-20, 2**-20]] * 5)
    assert measured(probs, torch.zeros(5, dtype=torch.int64), void=None)["brier"] == pytest.approx(2**-39, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_confidences_on_and_beside_edges_fall_as_in_numpy(dtype: type) -> None:
    confidence = neighbours_of_tenths(dtype)
    probs, labels = with_confidence(confidence), torch.arange(len(confidence)) % 3
    result = measured(probs, labels)
    assert_equal_results(result, slow_metrics(probs, labels))
    # bin 0 holds 0.1 and the value below it; every later one its upper edge, the value below, the value above its lower
    assert [row["count"] for row in result["reliability"]] == [2] + [3] * 9


def test_exactly_the_cutoff_is_not_certain() -> None:
    cutoff = np.float32(0.9)
    confidence = np.array([cutoff, np.nextafter(cutoff, np.float32(1))])
    result = measured(with_confidence(confidence), torch.tensor([0, 1]))
    assert (result["freq_90"], result["acc_90"], result["unc_90"]) == (0.5, 0, 0)


def test_another_cutoff_names_its_keys() -> None:
    probs, labels = dirichlet(5)
    result, expected = measured(probs, labels, cutoff=0.7), slow_metrics(probs, labels, cutoff=0.7)
    assert "acc_90" not in result
    for key in ("acc", "iou", "unc", "freq"):
        assert result[f"{key}_70"] == pytest.approx(expected[f"{key}_90"], rel=1e-6)


def test_reference_ece_counts_saturated_samples_without_their_confidence() -> None:
    result = measured(torch.eye(CLASSES), torch.arange(CLASSES))
    assert result["ece"] == 0 and result["ece_reference"] == 1
    assert result["unc_90"] is None  # nothing is wrong


def test_reference_ece_sums_an_edge_one_bin_up() -> None:
    confidence = np.array([0.7, 0.75], np.float32)
    result = measured(with_confidence(confidence), torch.tensor([0, 0]))
    # bin (0.6, 0.7] counts one and sums nothing: gap 1; bin (0.7, 0.8] counts one and sums both: gap 0.45
    assert result["ece_reference"] == pytest.approx(0.5 * 1 + 0.5 * 0.45, rel=1e-6)
    assert result["ece"] == pytest.approx(0.5 * 0.3 + 0.5 * 0.25, rel=1e-6)


def test_zero_probabilities_and_rounding_above_one_do_no_harm() -> None:
    result = measured(torch.tensor([[0.0, 0.0], [1.0000002, 0.0]]), torch.tensor([0, 0]), void=None)
    assert [row["count"] for row in result["reliability"]] == [1] + [0] * 8 + [1]


def test_half_precision_scores_as_its_widened_values() -> None:
    probs, labels = dirichlet(6)
    for half in (probs.half(), probs.bfloat16()):
        assert_equal_results(measured(half, labels), measured(half.float(), labels), relative=1e-12)


def test_void_frames_add_nothing() -> None:
    probs, labels = dirichlet(7)
    metrics = StreamingMetrics(CLASSES, VOID)
    for _ in range(2):
        metrics.update(probs[:1], torch.full_like(labels[:1], VOID))
    metrics.update(probs[:1], torch.full_like(labels[:1], VOID), continues=True)
    metrics.update(probs, labels)
    assert metrics.result() == measured(probs, labels)


def test_void_may_be_any_id() -> None:
    probs, labels = dirichlet(8)
    expected = measured(probs, labels)
    for void in (255, -1, 1000):
        assert measured(probs, labels.long().masked_fill(labels == VOID, void), void=void) == expected


def frame_of(*ids: int) -> Tensor:
    """(1, 3, 1, w) probabilities with these arg-max ids."""
    return torch.nn.functional.one_hot(torch.tensor(ids), 3).float().T[None, :, None]


def test_consistency_of_a_hand_made_sequence() -> None:
    metrics = StreamingMetrics(3, void=9)
    zeros = torch.zeros(1, 1, 4, dtype=torch.uint8)
    metrics.update(frame_of(0, 1, 2, 0), zeros)
    metrics.update(frame_of(0, 1, 1, 1), zeros, continues=True)  # 2 of 4 equal
    metrics.update(frame_of(0, 0, 0, 1), torch.tensor([[[9, 9, 0, 0]]]), continues=True)  # 1 of the 2 non-void
    metrics.update(frame_of(2, 2, 2, 2), zeros)  # another sequence
    metrics.update(frame_of(1, 1, 1, 1), zeros + 9, continues=True)  # all void: no pair, but the next one's past
    metrics.update(frame_of(1, 1, 1, 2), zeros, continues=True)  # 3 of 4 equal
    result = metrics.result()
    assert result["consistency_pairs"] == 3
    assert result["consistency"] == pytest.approx((2 / 4 + 1 / 2 + 3 / 4) / 3)


def test_a_frame_may_follow_the_last_of_a_batch() -> None:
    metrics = StreamingMetrics(3)
    batch = torch.cat([frame_of(0, 0), frame_of(1, 2)])
    metrics.update(batch, torch.zeros(2, 1, 2, dtype=torch.int64))
    metrics.update(frame_of(1, 2), torch.zeros(1, 1, 2, dtype=torch.int64), continues=True)
    assert (metrics.result()["consistency"], metrics.result()["consistency_pairs"]) == (1, 1)


PAIR_KEYS = ("consistency", "label_consistency", "change_agreement", "change_agreement_frozen")


def test_agreement_of_change_by_hand() -> None:
    metrics = StreamingMetrics(3, void=9)
    metrics.update(frame_of(0, 0, 0, 0, 0), torch.tensor([[[0, 0, 1, 9, 1]]]))
    metrics.update(frame_of(0, 1, 1, 0, 0), torch.tensor([[[0, 0, 2, 0, 9]]]), continues=True)
    result = metrics.result()  # both stay, only the prediction changes, both change, void before, void after
    assert [result[key] for key in PAIR_KEYS] == pytest.approx([2 / 4, 2 / 4, 2 / 3, 2 / 3])
    metrics.update(frame_of(0, 1, 1, 0, 0), torch.tensor([[[9, 9, 9, 9, 0]]]), continues=True)
    result = metrics.result()  # one pixel, void before: a pair for consistency, none for agreement
    assert [result[key] for key in PAIR_KEYS] == pytest.approx([3 / 4, 1 / 4, 2 / 3, 2 / 3])


def frame_with(*rows: list[float]) -> Tensor:
    """(1, 3, 1, w) probabilities, one row a pixel."""
    return torch.tensor(rows, dtype=torch.float64).T[None, :, None]


def crossed(weights: list[float], logged: list[float]) -> float:
    return -sum(w * math.log(max(q, 1e-12)) for w, q in zip(weights, logged, strict=True))


P, Q, R, S = [0.7, 0.2, 0.1], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1.0, 0.0, 0.0]


def test_cross_entropy_of_neighbours_by_hand() -> None:
    """Three frames of three pixels; those that are void in the later frame of a pair do not count."""
    metrics = StreamingMetrics(3, void=9)
    metrics.update(frame_with(P, Q, R), torch.tensor([[[9, 0, 0]]]))
    metrics.update(frame_with(Q, Q, P), torch.tensor([[[0, 9, 2]]]), continues=True)
    metrics.update(frame_with(R, R, S), torch.tensor([[[9, 9, 0]]]), continues=True)
    result = metrics.result()
    assert result["cec"] == pytest.approx(((crossed(P, Q) + crossed(R, P)) / 2 + crossed(P, S)) / 2)
    swapped = ((crossed(Q, P) + crossed(P, R)) / 2 + crossed(S, P)) / 2
    assert result["cec_reference"] == pytest.approx(swapped / 3)  # the mean over classes, and the roles swapped


def test_pairs_without_a_valid_pixel_and_breaks_have_no_cross_entropy() -> None:
    metrics = StreamingMetrics(3, void=9)
    zeros = torch.zeros(1, 1, 1, dtype=torch.int64)
    metrics.update(frame_with(P), zeros)
    metrics.update(frame_with(Q), zeros + 9, continues=True)
    metrics.update(frame_with(R), zeros)
    assert metrics.result()["cec"] is None and metrics.result()["cec_reference"] is None
    metrics.update(frame_with(S), zeros, continues=True)
    assert metrics.result()["cec"] == pytest.approx(crossed(R, S))


def held(thing: object) -> int:
    """Bytes of all tensors in an object and what it holds."""
    if isinstance(thing, Tensor):
        return thing.untyped_storage().nbytes()
    return sum(map(held, vars(thing).values())) if hasattr(thing, "__dict__") else 0


def test_memory_does_not_grow_with_updates() -> None:
    probs, labels = dirichlet(9)
    metrics = StreamingMetrics(CLASSES, VOID)
    metrics.update(probs, labels)
    once, sums = held(metrics), 2 * CLASSES**2 + CLASSES + 4 * 30 + 2 + 3 * 2 + 2 * 8192
    for _ in range(10):
        metrics.update(probs, labels)
    assert held(metrics) == once == 8 * sums + CLASSES + (4 * CLASSES + 2 * 8) * 40 * 50  # the last sample of three
    for _ in range(10):
        metrics.update(probs[:1], labels[:1], continues=True)
    assert held(metrics) == once + 4 * CLASSES * 40 * 50  # its logarithm, for its pairs


def test_updates_inside_and_outside_inference_mode_mix() -> None:
    probs, labels = dirichlet(10)
    with torch.inference_mode():
        metrics = StreamingMetrics(CLASSES, VOID)
        metrics.update(probs[:1], labels[:1])
    metrics.update(probs[1:].clone().requires_grad_(), labels[1:])
    assert_equal_results(metrics.result(), measured(probs, labels), relative=1e-12)


UNIFORM = torch.full((1, 3, 2, 2), 1 / 3)
ZEROS = torch.zeros(1, 2, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("probs", "labels", "words"),
    [
        (UNIFORM, torch.zeros(1, 4, 4, dtype=torch.int64), ["(1, 3, 2, 2)", "(1, 4, 4)", "(B, 3, ...)"]),
        (UNIFORM[:, :2], ZEROS, ["(1, 2, 2, 2)", "(B, 3, ...)"]),
        (UNIFORM[:0], ZEROS[:0], ["(0, 3, 2, 2)"]),
        (UNIFORM, ZEROS.float(), ["float32", "integer"]),
        (UNIFORM.long(), ZEROS, ["int64", "real"]),
        (UNIFORM, torch.tensor([[[0, 7], [-2, 9]]]), ["-2, 7", "0..2", "void (9)"]),
        (torch.where(torch.arange(4).view(2, 2) == 2, torch.nan, UNIFORM), ZEROS, ["nan", "0..1"]),
        (UNIFORM * 12, ZEROS, ["4..4", "softmax"]),
        (UNIFORM - 1, ZEROS, ["-0.666667", "softmax"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_sums_alone(probs: Tensor, labels: Tensor, words: list[str]) -> None:
    metrics = StreamingMetrics(3, void=9)
    metrics.update(UNIFORM, ZEROS)
    before = metrics.result()
    with pytest.raises(InputError) as caught:
        metrics.update(probs, labels)
    message = str(caught.value)
    assert "\n" not in message and all(word in message for word in words), message
    assert metrics.result() == before


def test_continuing_needs_one_frame_of_the_same_size_after_another() -> None:
    metrics = StreamingMetrics(3)
    with pytest.raises(InputError, match="none"):
        metrics.update(UNIFORM, ZEROS, continues=True)
    metrics.update(UNIFORM, ZEROS)
    with pytest.raises(InputError, match=r"\(1, 1, 2\) after \(2, 2\)"):
        metrics.update(UNIFORM[:, :, :1], ZEROS[:, :1], continues=True)
    with pytest.raises(InputError, match="one frame"):
        metrics.update(UNIFORM.repeat(2, 1, 1, 1), ZEROS.repeat(2, 1, 1), continues=True)
