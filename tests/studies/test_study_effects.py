"""Comparison of classifiers picture by picture, against the textbook's paired interval."""

import math
import statistics

import pytest
import torch

from steadyseg.core.prediction import Prediction
from steadyseg.studies.classification.effects import EFFECTS, FEW, MANY, OFF, Side, changes
from steadyseg.studies.classification.matrix import EVERY
from steadyseg.studies.harness.per_picture import PerPicture

PLAIN, SMOOTH = Side("resnet18", False, False), Side("resnet18", False, True)


def kept(nll: list[float], right: str, passes: int = OFF) -> dict[str, object]:
    return {"pictures": {str(passes): {"nll": " ".join(map(str, nll)), "right": right}}}


def test_a_change_is_the_mean_of_paired_differences_with_its_interval():
    record = {
        "resnet18-plain-0": kept([1.0, 2.0, 0.5, 0.25], "0101"),
        "resnet18-smooth-0": kept([0.5, 2.5, 0.25, 0.25], "1101"),
    }
    found = changes(record, PLAIN, SMOOTH)
    differences = [-0.5, 0.5, -0.25, 0.0]
    assert found["nll"].mean == pytest.approx(-0.0625)
    assert found["nll"].half == pytest.approx(1.96 * statistics.stdev(differences) / math.sqrt(4))
    assert found["right"].mean == pytest.approx(0.25)
    assert found["nll"].by_seed == [pytest.approx(-0.0625)]


def test_seeds_are_averaged_before_the_interval_is_taken():
    record = {
        "resnet18-plain-0": kept([1.0, 1.0], "11"),
        "resnet18-plain-1": kept([1.0, 1.0], "11"),
        "resnet18-smooth-0": kept([0.0, 1.0], "11"),
        "resnet18-smooth-1": kept([1.0, 0.0], "01"),
    }
    found = changes(record, PLAIN, SMOOTH)
    assert (found["nll"].mean, found["nll"].half) == (-0.5, 0.0)  # both pictures gain the same over the seeds
    assert found["right"].by_seed == [0.0, -0.5]


def test_a_seed_that_lacks_a_side_is_left_out():
    record = {"resnet18-plain-0": kept([1.0], "1"), "resnet18-smooth-1": kept([1.0], "1")}
    assert changes(record, PLAIN, SMOOTH) == {}


def test_pictures_are_kept_at_the_sizes_that_are_compared_and_predictions_passed_on():
    torch.manual_seed(0)
    batches = [(torch.randn(MANY, 3, 4), torch.tensor([0, 3, 1])), (torch.randn(MANY, 2, 4), torch.tensor([2, 2]))]
    pictures = PerPicture((OFF, FEW, MANY))
    for logits, labels in batches:
        given = [Prediction.from_logits(one) for one in logits]
        assert list(pictures.watch(given, labels, range(1, MANY + 1))) == given
    record = pictures.record()
    assert set(record) == {str(FEW), str(MANY)}
    side = Side("resnet18", True, True, FEW)
    found = side.of_seed({"resnet18-mc-smooth-0": {"pictures": record}}, 0)
    assert found is not None
    expected = torch.cat(
        [-logits[FEW - 1].log_softmax(1).gather(1, labels[:, None])[:, 0] for logits, labels in batches]
    )
    torch.testing.assert_close(found["nll"], expected.double(), atol=5.1e-4, rtol=0)
    right = torch.cat([logits[FEW - 1].argmax(1) == labels for logits, labels in batches])
    assert torch.equal(found["right"], right.double())


def test_every_effect_compares_networks_that_are_trained():
    trained = {(one.model, one.dropout, one.smoothing) for one in EVERY}
    for sides in EFFECTS.values():
        assert {(side.model, side.dropout, side.smoothing) for side in sides} <= trained
