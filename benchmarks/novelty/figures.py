"""From what `collect` kept of every picture to the figures of the study; nothing here chooses anything.

Score: mean of the standardised log distances of a frame's mean features at two stages. Scale: the held-back blocks. A
frame's temperature: fitted on the untrained frames under EXTRA and textures. All as `seg/own_world.py` fits them.
"""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from core.classes import CAMVID
from core.novelty.frame_temperature import fit_frame_temperature
from core.novelty.head import LEAST_LOG_TEMPERATURE, MOST_FITTED_DEVIATION, MOST_LOG_TEMPERATURE
from core.own_world import OwnWorld, binomial_interval
from core.robustness.ood_detection import auroc
from seg.own_world import CLEAN_SHARE

Row = dict[str, Any]
SCORED = (1, 2)
"""Places of the scored stages among those that `collect` looks at: the encoder's deepest, the decoder's first."""
NEIGHBOURS = 5
BOOTSTRAPS = 1000
UNLIKE_FITTED = ("elastic_transform", "pixelate", "zoom_blur", "fog")
"""Corruptions that nothing like them was fitted on."""


class Collected:
    """One network's pictures by group."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.held = self.group("held_back")
        self.stages = list(self.held[0]["statistics"]["camera"])
        table = self.statistics(self.held)
        self.mean, self.deviation = table.mean(0), table.std(0)
        self.own_world = OwnWorld(tuple(sorted(self.scores(self.held).tolist())))
        fit = pickle.loads((folder / "fit.pickle").read_bytes())
        wholes = fit["pooled"][self.stages[SCORED[0]]]
        bank = np.stack(wholes["clean"] + wholes["camera"])
        self.bank_mean, self.bank_deviation = bank.mean(0), bank.std(0) + 1e-6
        self.bank = (bank - self.bank_mean) / self.bank_deviation

    def group(self, name: str) -> list[Row]:
        return list(pickle.loads((self.folder / f"{name}.pickle").read_bytes()))

    def statistics(self, rows: Sequence[Row]) -> np.ndarray:
        """(N, S): the scored stages' pooled distances and the logits' statistics."""
        stages = [self.stages[place] for place in SCORED]
        return np.array(
            [[row["statistics"]["camera"][stage][2] for stage in stages] + list(row["logit"]) for row in rows]
        )

    def deviations(self, rows: Sequence[Row]) -> np.ndarray:
        return (self.statistics(rows) - self.mean) / self.deviation

    def scores(self, rows: Sequence[Row]) -> np.ndarray:
        return self.deviations(rows)[:, : len(SCORED)].mean(1)

    def alarms(self, rows: Sequence[Row]) -> int:
        return sum(self.own_world.is_strange(float(score)) for score in self.scores(rows))

    def baselines(self, rows: Sequence[Row]) -> dict[str, np.ndarray]:
        """Scores that are higher for what is strange."""
        last, deepest = self.stages[-1], self.stages[SCORED[0]]
        features = (np.stack([row["pooled"][deepest] for row in rows]) - self.bank_mean) / self.bank_deviation
        distances = np.sqrt(((features[:, None] - self.bank[None]) ** 2).mean(2))
        return {
            "novelty": self.scores(rows),
            "entropy": np.array([row["logit"][0] for row in rows]),
            "max-logit": np.array([-row["max_logit"] for row in rows]),
            "energy": np.array([-row["energy"] for row in rows]),
            "pixel distance, last stage": np.array([row["statistics"]["camera"][last][0] for row in rows]),
            "pooled distance, last stage": np.array([row["statistics"]["camera"][last][2] for row in rows]),
            "the same, cameras not shown": np.array([row["statistics"]["clean"][last][2] for row in rows]),
            f"{NEIGHBOURS} nearest neighbours": np.sort(distances, 1)[:, NEIGHBOURS - 1],
        }


def by_kind(rows: Sequence[Row]) -> dict[str, list[Row]]:
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    return kinds


def measure(folder: Path) -> dict[str, Any]:
    """All figures of one network."""
    seen = Collected(folder)
    groups = {
        name: seen.group(name)
        for name in ("test", "val", "street", "motorways", "objects", "no_pictures", "controls", "common")
    }
    temperature = FrameTemperature(seen)
    drives = {
        drive: [row for row in groups["test"] if row["name"].startswith(drive)] for drive in ("0001TP", "Seq05VD")
    }
    inside = seen.baselines(groups["test"])
    foreign = {
        kind: {"pictures": len(rows), "alarms": share(seen, rows), "auroc": aurocs(inside, seen.baselines(rows))}
        for group in ("motorways", "objects", "no_pictures", "street")
        for kind, rows in by_kind(groups[group]).items()
    }
    controls = {
        kind: {"pictures": len(rows), "alarms": share(seen, rows), "auroc": aurocs(inside, seen.baselines(rows))}
        | {
            "accuracy": mean_of(rows, "accuracy"),
            "clean_accuracy": mean_of(same_stills(groups["test"], rows), "accuracy"),
        }
        for kind, rows in by_kind(groups["controls"]).items()
    }
    corrupted = {
        kind: {"pictures": len(rows), "alarms": share(seen, rows), "accuracy": mean_of(rows, "accuracy")}
        | {way: temperature.judge(rows, way) for way in WAYS}
        for kind, rows in by_kind(groups["common"]).items()
    }
    labelled = [*groups["test"], *groups["val"], *groups["common"], *groups["controls"]]
    return {
        "stages": [seen.stages[place] for place in SCORED],
        "held_back_pictures": len(seen.held),
        "own_alarms": interval(seen, seen.held),
        "alarms": {name: interval(seen, rows) for name, rows in {**drives, "val": groups["val"]}.items()},
        "mild_alarms": interval(seen, groups["controls"]),
        "foreign": foreign,
        "controls": controls,
        "corrupted": corrupted,
        "clean": {way: temperature.judge(groups["test"], way) for way in WAYS},
        "clean_accuracy": mean_of(groups["test"], "accuracy"),
        "expected": {way: temperature.expected_error(labelled, way) for way in WAYS},
        "level": temperature.level,
        "slopes": temperature.slopes,
    }  # fmt: skip


def mean_of(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def same_stills(clean: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    names = {row["name"] for row in rows}
    return [row for row in clean if row["name"] in names] or list(clean)


def share(seen: Collected, rows: Sequence[Row]) -> float:
    return seen.alarms(rows) / len(rows)


def interval(seen: Collected, rows: Sequence[Row]) -> dict[str, Any]:
    hits = seen.alarms(rows)
    return {"frames": len(rows), "alarms": hits / len(rows), "interval": binomial_interval(hits, len(rows))}


def aurocs(inside: dict[str, np.ndarray], outside: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: auroc(torch.from_numpy(inside[name]), torch.from_numpy(outside[name])) for name in inside}


WAYS = ("none", "one", "frame")
"""Temperature 1; one number fitted on the same frames as the frame's; the frame's own."""


class FrameTemperature:
    """Fitted on the untrained frames, judged on others."""

    def __init__(self, seen: Collected) -> None:
        self.seen, rows = seen, seen.group("untrained")
        pairs = [pixels(row) for row in rows]
        logits, labels = [one for one, _ in pairs], [one for _, one in pairs]
        clean = torch.tensor([float(row["kind"] == "clean") for row in rows], dtype=torch.float64)
        weights = CLEAN_SHARE * clean / clean.sum() + (1 - CLEAN_SHARE) * (1 - clean) / (1 - clean).sum()
        deviations = torch.from_numpy(seen.deviations(rows))
        fit = fit_frame_temperature(deviations, logits, labels, weights)
        self.slopes, self.level = list(fit.slopes), fit.level
        self.one = fit_frame_temperature(deviations[:, :0], logits, labels, weights).level

    def logs(self, rows: Sequence[Row], way: str) -> np.ndarray:
        if way != "frame":
            return np.full(len(rows), self.one if way == "one" else 0.0)
        near = np.clip(self.seen.deviations(rows), -MOST_FITTED_DEVIATION, MOST_FITTED_DEVIATION)
        return np.clip(near @ self.slopes + self.level, LEAST_LOG_TEMPERATURE, MOST_LOG_TEMPERATURE)

    def judge(self, rows: Sequence[Row], way: str) -> dict[str, float]:
        """NLL and ECE (10 bins) over the pixels on the grid, and the interval of the ECE over stills drawn anew."""
        tables = [bins(row, float(np.exp(log))) for row, log in zip(rows, self.logs(rows, way), strict=True)]
        nll = float(sum(one for one, _ in tables) / sum(table[0].sum() for _, table in tables))
        stacked = np.stack([table for _, table in tables])
        draw = np.random.default_rng(0)
        counts = draw.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), BOOTSTRAPS)  # stills drawn anew
        drawn = np.einsum("dn,nck->dck", counts, stacked)
        low, high = np.quantile(np.abs(drawn[:, 1] - drawn[:, 2]).sum(1) / drawn[:, 0].sum(1), (0.025, 0.975))
        return {"nll": nll, "ece": ece(stacked.sum(0)), "ece_low": float(low), "ece_high": float(high)}

    def expected_error(self, rows: Sequence[Row], way: str) -> float:
        """Mean over frames of |mean confidence - accuracy|."""
        gaps = []
        for row, log in zip(rows, self.logs(rows, way), strict=True):
            _, table = bins(row, float(np.exp(log)))
            gaps.append(abs(table[2].sum() - table[1].sum()) / table[0].sum())
        return float(np.mean(gaps))


def pixels(row: Row) -> tuple[Tensor, Tensor]:
    """(P, K) logits and (P,) labels on the grid, void left out."""
    kept = row["label"] != CAMVID.void_id
    return torch.from_numpy(row["grid"].astype(np.float32).T[kept]), torch.from_numpy(
        row["label"][kept].astype(np.int64)
    )


def bins(row: Row, temperature: float) -> tuple[float, np.ndarray]:
    """(summed NLL, (3, 10) of count, right ones and confidence by confidence)."""
    logits, labels = pixels(row)
    logs = F.log_softmax(logits / temperature, 1)
    confidence, best = logs.exp().max(1)
    place = np.clip(np.ceil(confidence.numpy() * 10).astype(int) - 1, 0, 9)
    right = (best == labels).double().numpy()
    columns = [np.bincount(place, weights, 10) for weights in (np.ones(len(place)), right, confidence.double().numpy())]
    return float(F.nll_loss(logs, labels, reduction="sum")), np.stack(columns)


def ece(table: np.ndarray) -> float:
    return float(np.abs(table[1] - table[2]).sum() / table[0].sum())
