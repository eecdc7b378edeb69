"""Figures of classifiers picture by picture, and the intervals of paired changes in docs/studies/ablations."""

import pytest
import torch

from steadyseg.app.cli import read_flags
from steadyseg.app.commands import find_command
from steadyseg.core.prediction import Prediction
from steadyseg.studies.ablations.bootstrap import paired_bootstrap
from steadyseg.studies.ablations.matrix import ABLATIONS, SEEDS, to_train
from steadyseg.studies.ablations.per_picture import PerPicture, read_per_picture
from steadyseg.studies.ablations.tables import ablation_table


def test_figures_of_each_picture_survive_their_record() -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(3, 4), torch.tensor([0, 3, 1])), (torch.randn(2, 4), torch.tensor([2, 2]))]
    pictures = PerPicture()
    for logits, labels in batches:
        pictures.add(Prediction.from_logits(logits), labels)
    found = read_per_picture(pictures.record())
    expected = torch.cat([-logits.log_softmax(1).gather(1, labels[:, None])[:, 0] for logits, labels in batches])
    torch.testing.assert_close(found["nll"], expected.double(), atol=5.1e-4, rtol=0)
    assert torch.equal(found["right"], torch.cat([x.argmax(1) == labels for x, labels in batches]).double())


def test_the_paired_bootstrap_finds_a_change_that_pictures_share() -> None:
    generator = torch.Generator().manual_seed(0)
    before = [torch.randn(400, generator=generator, dtype=torch.float64) for _ in SEEDS]
    noise = torch.randn(400, generator=generator, dtype=torch.float64)
    found = paired_bootstrap(before, [one + 0.5 + 0.1 * noise for one in before])
    assert found.mean == pytest.approx(0.5, abs=0.02) and found.low < found.mean < found.high
    expected = 1.96 * 0.1 / 400**0.5
    assert found.high - found.low == pytest.approx(2 * expected, rel=0.15)
    assert len(found.by_seed) == 2 and found == paired_bootstrap(before, [one + 0.5 + 0.1 * noise for one in before])


def test_every_training_has_flags_that_the_command_takes() -> None:
    variants = {variant.name: variant for ablation in ABLATIONS for variant in ablation.variants}
    for name, variant in variants.items():
        for seed in SEEDS:
            found = read_flags(*find_command(["train", *variant.training(seed).flags])).config
            assert (found.loop.seed, found.loop.epochs, found.loop.threads) == (seed, 30, 1), name
            options = found.classifier
            assert (options.channels, options.dropout, options.smoothing) == (16, 0.3, name.startswith("blur")), name
            assert options.network == ("preresnet18" if name == "preact" else "resnet18")


def test_ablations_are_trained_once_and_shown_where_all_seeds_are_there() -> None:
    names = [job.name for job in to_train()]
    assert len(names) == len(set(names)) and names[:4] == ["none-0", "none-1", "blur2-tanh-0", "blur2-tanh-1"]
    rows = {"nll": "1.000 2.000", "right": "01", "figures": {"nll": 1.5, "accuracy": 0.5, "ece": 0.1}}
    better = {"nll": "0.500 1.500", "right": "11", "figures": {"nll": 1.0, "accuracy": 1.0, "ece": 0.1}}
    record = {f"none-{seed}": {"rows": rows} for seed in SEEDS} | {
        f"blur2-tanh-{seed}": {"rows": better} for seed in SEEDS
    }
    text = ablation_table(ABLATIONS[0], record)
    assert "| Blur ∘ ReLU ∘ tanh | 1.000 | -0.500 (-0.500 to -0.500) | -0.500, -0.500 |" in text
    assert "0.801 | 78.9 | 2.56 |" in text
    assert ablation_table(ABLATIONS[1], record) == ""
