"""Occupancy's real files: what is read, what a short training finds, and the mean over rows by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refusal

from steadyseg.core.prediction import Prediction
from steadyseg.studies.systems.occupancy import TESTS, TRAIN, measure_rows, read_rows, smooth, train


@pytest.fixture
def folder(data_dir: Path) -> Path:
    if not (data_dir / "occupancy").is_dir():
        pytest.skip(f"no occupancy in {data_dir}")
    return data_dir / "occupancy"


def test_the_files_have_their_published_rows(folder: Path, tmp_path: Path) -> None:
    rows = read_rows(folder / TRAIN)
    assert len(rows.occupied) == 8143 and rows.occupied.float().mean() == pytest.approx(0.2123, abs=1e-4)
    assert rows.sensors[0].tolist() == pytest.approx([23.18, 27.272, 426, 721.25, 0.004793], rel=1e-4)
    assert [len(read_rows(folder / name).occupied) for name in TESTS] == [2665, 9752]
    assert set(np.unique(rows.minutes)) == {1}
    (tmp_path / "x.txt").write_text('"a","b"\n1,2\n')
    assert "Occupancy Detection" in refusal(read_rows, tmp_path / "x.txt")


def test_a_short_training_beats_the_constant_answer_by_every_method(folder: Path) -> None:
    network, rows = train(read_rows(folder / TRAIN), seed=0, epochs=2), read_rows(folder / TESTS[0])
    constant = 1 - rows.occupied.float().mean().item()
    for method in ("dnn", "vq-bnn"):
        found = measure_rows(network, rows, method)
        assert found["accuracy"] > 0.9 > constant and found["nll"] < 0.3


def test_the_mean_over_rows_ages_by_the_minutes_between_them() -> None:
    probs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    means = smooth(Prediction(probs, torch.zeros(3)), np.array([1, 1, 3]), tau=2.0)
    weights = np.exp([-4 / 2, -3 / 2, 0])
    assert means[2, 0].item() == pytest.approx(weights[0] / weights.sum(), rel=1e-6)
