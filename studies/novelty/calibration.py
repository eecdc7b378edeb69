"""Calibration of the confidence at temperature 1, at the one fitted temperature, and at each frame's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.classes import CAMVID

Row = dict[str, Any]
WAYS = ("none", "one", "frame")
"""Temperature 1, the one fitted temperature, and the frame's own temperature from the network."""
BOOTSTRAPS = 1000


def judge(rows: Sequence[Row], temperatures: Sequence[float]) -> dict[str, float]:
    """NLL and ECE (10 bins) over the pixels on the grid, and the interval of the ECE over stills drawn anew."""
    tables = [bins(row, one) for row, one in zip(rows, temperatures, strict=True)]
    nll = float(sum(one for one, _ in tables) / sum(found[0].sum() for _, found in tables))
    stacked = np.stack([found for _, found in tables])
    draw = np.random.default_rng(0)
    counts = draw.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), BOOTSTRAPS)
    drawn = np.einsum("dn,nck->dck", counts, stacked)
    low, high = np.quantile(np.abs(drawn[:, 1] - drawn[:, 2]).sum(1) / drawn[:, 0].sum(1), (0.025, 0.975))
    return {"nll": nll, "ece": ece(stacked.sum(0)), "ece_low": float(low), "ece_high": float(high)}


def reliability(rows: Sequence[Row], temperatures: Sequence[float]) -> list[list[float]]:
    """Count, right ones and confidence by confidence, over all pixels."""
    total = np.sum([bins(row, one)[1] for row, one in zip(rows, temperatures, strict=True)], 0)
    return [list(row) for row in total]


def expected_error(rows: Sequence[Row], temperatures: Sequence[float]) -> float:
    """Mean over frames of |mean confidence - accuracy|."""
    gaps = []
    for row, one in zip(rows, temperatures, strict=True):
        _, found = bins(row, one)
        gaps.append(abs(found[2].sum() - found[1].sum()) / found[0].sum())
    return float(np.mean(gaps))


def pixels(row: Row) -> tuple[Tensor, Tensor]:
    """(P, K) logits and (P,) labels on the grid, void left out."""
    kept = row["label"] != CAMVID.void_id
    logits, labels = row["grid"].astype(np.float32).T[kept], row["label"][kept].astype(np.int64)
    return torch.from_numpy(logits), torch.from_numpy(labels)


def bins(row: Row, temperature: float) -> tuple[float, np.ndarray]:
    """(summed NLL, (3, 10) of count, right ones and confidence by confidence)."""
    logits, labels = pixels(row)
    logs = F.log_softmax(logits / temperature, 1)
    confidence, best = logs.exp().max(1)
    return float(F.nll_loss(logs, labels, reduction="sum")), binned(confidence, best == labels)


def binned(confidence: Tensor, right: Tensor) -> np.ndarray:
    """(P,) each -> (3, 10) of count, right ones and summed confidence."""
    place = np.clip(np.ceil(confidence.numpy() * 10).astype(int) - 1, 0, 9)
    columns = (np.ones(len(place)), right.double().numpy(), confidence.double().numpy())
    return np.stack([np.bincount(place, values, 10) for values in columns])


def ece(table: np.ndarray) -> float:
    return float(np.abs(table[1] - table[2]).sum() / table[0].sum())
