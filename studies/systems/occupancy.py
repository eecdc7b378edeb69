"""Sensor streams: UCI Occupancy Detection, a row a minute of five sensors of a room, and whether somebody is in it.

An MLP with MC dropout is trained on the training file and runs over the two test files as streams: one pass, 30 passes,
and one pass a row averaged over the recent rows.
"""

import csv
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.method import BNN_SAMPLES, PUBLISHED_TAU
from steadyseg.core.prediction import Prediction
from steadyseg.core.predictors import MonteCarlo, OnePass
from steadyseg.core.temporal import TemporalSmoothing

SENSORS = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")
TRAIN, TESTS = "datatraining.txt", ("datatest.txt", "datatest2.txt")
WIDTH, RATE = 64, 0.5
EPOCHS, BATCH, LEARNING_RATE = 60, 128, 1e-3
SEEDS = range(3)
METHODS = ("dnn", "bnn", "vq-dnn", "vq-bnn")
KEYS = ("nll", "accuracy", "ece")


class Rows(NamedTuple):
    """A file of readings in order."""

    sensors: Tensor
    """(N, 5) float32."""
    occupied: Tensor
    """(N,) int64, 0 or 1."""
    minutes: np.ndarray
    """(N,) whole minutes since the row before, 1 or more; the first is 1."""


def read_rows(path: Path) -> Rows:
    """Reads a file; its lines have a number before the names of the header. InputError for another file."""
    try:
        header, *lines = list(csv.reader(path.read_text().splitlines()))
        places = [header.index(name) + len(lines[0]) - len(header) for name in (*SENSORS, "Occupancy", "date")]
        values = [[line[place] for place in places] for line in lines]
        times = [datetime.fromisoformat(line[-1]) for line in values]
        table = np.array([line[:-1] for line in values], np.float64)
    except (OSError, ValueError, IndexError) as error:
        raise InputError(f"{path}: expected a file of UCI's Occupancy Detection ({error})") from error
    seconds = np.diff([time.timestamp() for time in times], prepend=times[0].timestamp() - 60)
    minutes = np.maximum(np.rint(seconds / 60), 1)
    return Rows(torch.tensor(table[:, :-1]).float(), torch.tensor(table[:, -1]).long(), minutes.astype(int))


def make_network(rows: Rows) -> nn.Module:
    """An MLP of two hidden layers with dropout after each; the statistics of the training rows are part of it."""
    return nn.Sequential(
        Standardize(rows.sensors),
        nn.Linear(len(SENSORS), WIDTH),
        nn.ReLU(),
        Dropout(RATE),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        Dropout(RATE),
        nn.Linear(WIDTH, 2),
    )


class Standardize(nn.Module):
    """(B, 5) readings -> mean 0 and deviation 1 over the training rows."""

    def __init__(self, sensors: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", sensors.mean(0))
        self.register_buffer("std", sensors.std(0))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.get_buffer("mean")) / self.get_buffer("std")


def train(rows: Rows, seed: int, epochs: int = EPOCHS) -> nn.Module:
    """Trains by Adam on shuffled rows."""
    torch.manual_seed(seed)
    network = make_network(rows)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows.occupied)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(network(rows.sensors[batch]), rows.occupied[batch]).backward()
            optimizer.step()
    return network.eval()


@torch.inference_mode()
def measure_rows(network: nn.Module, rows: Rows, method: str, tau: float = PUBLISHED_TAU) -> dict[str, float]:
    """NLL, accuracy and ECE of a method over a file as one stream; a gap of minutes ages the mean."""
    set_dropout_active(network, method.endswith("bnn"))
    predictor = MonteCarlo(network, BNN_SAMPLES) if method == "bnn" else OnePass(network)
    now = predictor(rows.sensors)
    probs = smooth(now, rows.minutes, tau) if method.startswith("vq-") else now.probs
    metrics = StreamingMetrics(2)
    metrics.update(probs, rows.occupied)
    return {key: metrics.result()[key] for key in KEYS}


def smooth(rows: Prediction, minutes: np.ndarray, tau: float) -> Tensor:
    """(N, 2) predictions in order -> their temporal means, by the rule of the product."""
    rule, state, means = TemporalSmoothing(tau), None, []
    for place, gap in enumerate(minutes.tolist()):
        now = Prediction(rows.probs[place : place + 1], rows.member_entropy[place : place + 1])
        mean_now, state = rule(now, state, gap)
        means.append(mean_now.probs)
    return torch.cat(means)


def measure_occupancy(folder: Path) -> dict[str, Any]:
    """Figures by test file and method, as the mean and the range over the seeds of the training."""
    training = read_rows(folder / TRAIN)
    networks = [train(training, seed) for seed in SEEDS]
    found: dict[str, Any] = {}
    for name in TESTS:
        rows = read_rows(folder / name)
        found[name] = {"rows": len(rows.occupied), "occupied": rows.occupied.float().mean().item(), "methods": {}}
        for method in METHODS:
            results = [measure_rows(network, rows, method) for network in networks]
            found[name]["methods"][method] = {
                key: {"mean": mean(values), "low": min(values), "high": max(values)}
                for key in KEYS
                for values in [[result[key] for result in results]]
            }
    return found
