"""Groups of samples counted by hand, and groups of pixels by distance and region."""

import pytest
import torch

from steadyseg.studies.analysis.measures.regions import DISTANCES, distance_groups, interval_names, size_groups
from steadyseg.studies.analysis.measures.reliability import GroupTally, scores


def test_groups_are_counted_apart_and_together() -> None:
    tally = GroupTally(3)
    groups = torch.tensor([0, 0, 0, 1, -1])
    confidence = torch.tensor([0.95, 0.95, 0.6, 0.5, 0.9])
    correct = torch.tensor([True, False, True, False, True])
    tally.add(groups, confidence, correct, torch.tensor([0.1, 3.0, 0.5, 0.7, 9.0]))
    first, second = tally.rows(["a", "b", "c"])
    assert (first["group"], first["samples"], second["group"]) == ("a", 3, "b")
    assert first["accuracy"] == pytest.approx(2 / 3) and first["confidence"] == pytest.approx(2.5 / 3)
    assert first["gap"] == pytest.approx(0.5 / 3) and first["nll"] == pytest.approx(1.2)
    assert first["confident_errors"] == pytest.approx(1 / 3) and first["share"] == 0.75
    assert first["ece_15"] == pytest.approx((abs(1.9 - 1) + abs(0.6 - 1)) / 3)
    (both,) = tally.merged([[0, 1]]).rows(["all"])
    assert both["samples"] == 4 and both["accuracy"] == 0.5


def test_scores_of_probabilities() -> None:
    probs = torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    confidence, correct, nll = scores(probs, torch.tensor([0, 0]))
    assert confidence.tolist() == pytest.approx([0.7, 0.8]) and correct.tolist() == [True, False]
    assert nll.tolist() == pytest.approx([-torch.tensor(0.7).log().item(), -torch.tensor(0.2).log().item()])


def test_the_distance_from_a_boundary_is_counted_in_steps() -> None:
    labels = torch.zeros(5, 50, dtype=torch.long)
    labels[:, 25:] = 3
    labels[0] = 11
    groups = distance_groups(labels, 11)
    assert (groups[0] == -1).all()
    expected = [sum(min(abs(x - 24), abs(x - 25)) >= start for start in DISTANCES) for x in range(50)]
    assert groups[2].tolist() == expected and groups[4].tolist() == expected
    assert interval_names(DISTANCES) == ["0-1", "2-3", "4-7", "8-15", "16+"]
    alone = torch.zeros(4, 4, dtype=torch.long)
    alone[0, 0] = 11  # void is no boundary
    assert (distance_groups(alone, 11).flatten()[1:] == len(DISTANCES)).all()


def test_the_size_of_a_region_is_its_own() -> None:
    labels = torch.zeros(40, 40, dtype=torch.long)
    labels[:5, :5] = 1  # 25 pixels
    labels[20:30, 20:30] = 1  # 100 pixels, apart
    labels[39, 39] = 11
    groups = size_groups(labels, 11)
    assert groups[0, 0] == 0 and groups[25, 25] == 1 and groups[10, 30] == 3 and groups[39, 39] == -1
