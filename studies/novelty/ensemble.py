"""A deep ensemble of three trainings on the same pictures: its disagreement as a score, and its calibration."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.core.classes import CAMVID
from steadyseg.studies.novelty.calibration import binned, ece
from steadyseg.studies.novelty.figures import FOREIGN, auroc_of, by_kind

Row = dict[str, Any]


def measure_ensemble(folders: Sequence[Path]) -> dict[str, Any]:
    """AUROC by kind, and the mean ECE over the types that count."""

    def group(name: str) -> list[tuple[Row, ...]]:
        return list(zip(*(pickle.loads((folder / f"{name}.pickle").read_bytes()) for folder in folders), strict=True))

    inside = np.array([disagreement(rows) for rows in group("test")])
    foreign = {
        kind: auroc_of(inside, np.array([disagreement(rows) for rows in members]))
        for name in FOREIGN
        for kind, members in kinds(group(name)).items()
    }
    common = kinds(group("common"))
    error = float(np.mean([ece(np.sum([bins(rows) for rows in members], axis=0)) for members in common.values()]))
    return {"members": len(folders), "auroc": foreign, "corrupted_ece": {"none": error}}


def kinds(members: Sequence[tuple[Row, ...]]) -> dict[str, list[tuple[Row, ...]]]:
    names = by_kind([{"kind": rows[0]["kind"], "rows": rows} for rows in members])
    return {kind: [one["rows"] for one in rows] for kind, rows in names.items()}


def probabilities(rows: Sequence[Row]) -> torch.Tensor:
    """(members, P, K) on the grid, at temperature 1."""
    return torch.stack([torch.from_numpy(row["grid"].astype(np.float32).T).softmax(1) for row in rows])


def disagreement(rows: Sequence[Row]) -> float:
    """Mean over the grid of H[mean p] - mean H[p], in nats."""
    probs = probabilities(rows)
    mean = probs.mean(0)
    return float((torch.special.entr(mean).sum(1) - torch.special.entr(probs).sum(2).mean(0)).mean())


def bins(rows: Sequence[Row]) -> np.ndarray:
    """(3, 10) of count, right ones and confidence by confidence."""
    kept = rows[0]["label"] != CAMVID.void_id
    confidence, best = probabilities(rows).mean(0)[kept].max(1)
    return binned(confidence, best == torch.from_numpy(rows[0]["label"][kept]))
