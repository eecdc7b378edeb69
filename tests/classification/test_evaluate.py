"""Ensemble sizes against plain loops, metrics against NumPy, and what is refused before anything is measured."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.classifier import ANIMALS, save_classifier, save_pictures
from refusals import refusal
from torch import Tensor

from steadyseg.classification.data.open import open_classification, open_split_of, split_held_out
from steadyseg.classification.evaluate import (
    Batch,
    Classifier,
    ImageMetrics,
    SizeMetrics,
    batch_size,
    batches,
    default_samples,
    fit_temperature,
    predict,
)
from steadyseg.classification.options import ClassifierOptions, ClassTrainConfig
from steadyseg.classification.pretrained import build_members, read_classifier
from steadyseg.classification.train import prepare_classification
from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.evaluation.conformal import ConformalScores
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.prediction import Prediction, entropy
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training.parts import Run

PLAIN = ClassifierOptions(channels=4)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two networks with dropout and two without, of different weights."""
    root = tmp_path_factory.mktemp("classifiers")
    made = {f"mc{i}": save_classifier(root / f"mc{i}.safetensors", seed=i) for i in (0, 1)}
    return made | {f"plain{i}": save_classifier(root / f"plain{i}.safetensors", PLAIN, seed=i) for i in (0, 1)}


def opened(files: dict[str, Path], *names: str, seed: int = 0) -> Classifier:
    models = [read_classifier(files[name]) for name in names]
    networks, meta = build_members(models), models[0].meta
    return Classifier(networks, meta.mean, meta.std, CPU, seed)


def noise(count: int = 5, first: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(7)
    pictures = torch.randint(0, 256, (count, 32, 32, 3), dtype=torch.uint8, generator=generator)
    return first, pictures, torch.arange(count) % len(ANIMALS)


def slow_softmax(network: torch.nn.Module, pictures: Tensor, temperature: float = 1.0) -> np.ndarray:
    """One pass, whole: (B, K) float64."""
    x = (pictures.permute(0, 3, 1, 2).double() / 255 - 0.5) / 0.2
    with torch.no_grad():
        return torch.softmax(network(x.float()).double() / temperature, 1).numpy()


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_every_size_is_the_mean_of_that_many_whole_passes(files: dict[str, Path], temperature: float) -> None:
    batch, classifier = noise(first=512), opened(files, "mc0", seed=3)
    found = list(classifier.by_size(batch, "bnn", 7, temperature))
    torch.manual_seed(mix_seed(3, 512))
    looks = np.stack([slow_softmax(classifier.networks[0], batch[1], temperature) for _ in range(7)])
    assert len(found) == 7 and looks.std(0).max() > 0.01
    for size, prediction in enumerate(found, start=1):
        np.testing.assert_allclose(prediction.probs, looks[:size].mean(0), atol=2e-6)
        expected = entropy(torch.from_numpy(looks[:size].reshape(-1, 6))).view(size, -1).mean(0)
        torch.testing.assert_close(prediction.member_entropy.double(), expected, atol=1e-5, rtol=0)


def test_dropout_off_is_one_look_and_comes_on_again(files: dict[str, Path]) -> None:
    batch, classifier = noise(), opened(files, "mc0")
    (off,) = classifier.by_size(batch, "dnn", 1)
    assert not torch.equal(next(iter(classifier.by_size(batch, "bnn", 1))).probs, off.probs)
    set_dropout_active(classifier.networks[0], False)
    np.testing.assert_allclose(off.probs, slow_softmax(classifier.networks[0], batch[1]), atol=2e-6)


def test_every_network_of_an_ensemble_counts(files: dict[str, Path]) -> None:
    """Without dropout one by one; a dropout pass is one by all networks."""
    batch, classifier = noise(), opened(files, "plain0", "plain1")
    first, both = classifier.by_size(batch, "dnn", 2)
    alone = [slow_softmax(network, batch[1]) for network in classifier.networks]
    np.testing.assert_allclose(first.probs, alone[0], atol=2e-6)
    np.testing.assert_allclose(both.probs, (alone[0] + alone[1]) / 2, atol=2e-6)
    assert not classifier.has_dropout
    classifier = opened(files, "mc0", "mc1")
    found = list(classifier.by_size(batch, "bnn", 3))
    torch.manual_seed(mix_seed(0, 0))
    looks = [slow_softmax(network, batch[1]) for _ in range(3) for network in classifier.networks]
    for size, prediction in enumerate(found, start=1):
        np.testing.assert_allclose(prediction.probs, np.mean(looks[: 2 * size], 0), atol=2e-6)


def test_batches_hold_every_picture_as_it_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = open_classification(save_pictures(tmp_path), "test")
    monkeypatch.setattr("steadyseg.classification.evaluate.MAX_AT_ONCE", 7)
    parts = list(batches(data, 24))
    assert [(first, len(labels)) for first, _, labels in parts] == [(0, 7), (7, 7), (14, 4)]
    assert torch.cat([labels for *_, labels in parts]).tolist() == data.labels.tolist()
    assert np.array_equal(parts[1][1][2], data.evaluation_view(data[9][0], 24))
    monkeypatch.undo()
    assert [batch_size(size) for size in (8, 32, 64, 224, 4096)] == [256, 256, 256, 20, 1]


def made_predictions(sizes: int, seed: int, count: int = 40, classes: int = 12) -> tuple[list[Prediction], Tensor]:
    generator = np.random.default_rng(seed)
    members = generator.dirichlet([0.3] * classes, (sizes, count))
    means = members.cumsum(0) / np.arange(1, sizes + 1)[:, None, None]
    probs = [torch.from_numpy(mean.astype(np.float32)) for mean in means]
    labels = torch.from_numpy(generator.integers(0, classes, count))
    return [Prediction(one, entropy(one) / 2) for one in probs], labels


def test_the_curve_and_the_rows_equal_numpy() -> None:
    metrics, parts = SizeMetrics(12, range(1, 8)), [made_predictions(7, seed) for seed in (0, 1)]
    for predictions, labels in parts:
        assert metrics.update(iter(predictions), labels) is predictions[-1]
    truth = torch.cat([labels for _, labels in parts]).numpy()
    rows = {row["n"]: row for row in metrics.rows()}
    assert list(rows) == [1, 2, 3, 4, 5, 7]  # 6 is no full size, 7 is the last
    for point in metrics.curve():
        probs = np.concatenate([part[point["n"] - 1].probs.numpy() for part, _ in parts]).astype(np.float64)
        assert point["nll"] == pytest.approx(-np.log(np.maximum(probs[np.arange(80), truth], 1e-12)).mean(), rel=1e-6)
        assert point["accuracy"] == (probs.argmax(1) == truth).mean()
        row = rows.get(point["n"])
        if row:
            assert (row["nll"], row["accuracy"]) == (pytest.approx(point["nll"]), point["accuracy"])
            top = [label in order[:5] for label, order in zip(truth, np.argsort(-probs, 1), strict=True)]
            assert row["top_5_accuracy"] == np.mean(top)
            total = -(probs * np.log(np.maximum(probs, 1e-300))).sum(1).mean()
            assert row["entropy"] == pytest.approx(total, rel=1e-5)
            assert row["disagreement"] == pytest.approx(total / 2, rel=1e-5)


def test_accuracy_by_class_counts_each_class_alone() -> None:
    metrics = ImageMetrics(3)
    probs = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1]])
    metrics.update(Prediction(probs, entropy(probs)), torch.tensor([0, 0, 2]))
    found = metrics.details()
    assert found["class_accuracy"] == [0.5, None, 0.0] and found["class_images"] == [2, 0, 1]
    assert metrics.figures()["top_5_accuracy"] is None  # of three classes five are always right


@pytest.mark.parametrize(("mode", "samples"), [("dnn", 1), ("bnn", 3)])
def test_the_fitted_temperature_has_the_least_nll(files: dict[str, Path], mode: str, samples: int) -> None:
    """Labels drawn from the network's own predictions at temperature 2; NLL in float64 at it and beside it."""
    classifier, pictures = opened(files, "mc0"), noise(150)[1]
    *_, mean = classifier.by_size((0, pictures, torch.zeros(150)), mode, samples, 2.0)
    labels = torch.multinomial(mean.probs, 1, generator=torch.Generator().manual_seed(0))[:, 0]
    found = fit_temperature(classifier, [(0, pictures, labels)], mode, samples, 6)

    def nll(temperature: float) -> float:
        *_, last = classifier.by_size((0, pictures, labels), mode, samples, temperature)
        return float(-last.probs.double().gather(1, labels[:, None]).log().mean())

    assert found.pixels == 150 and 1.2 < found.temperature < 3.5
    assert found.nll == pytest.approx(nll(1.0), rel=1e-5)
    assert nll(found.temperature) < min(nll(found.temperature * factor) for factor in (1 / 1.1, 1.1))
    ((probs, given),) = predict(classifier, [(0, pictures, labels)], mode, samples, found.temperature)
    p_true = probs.double().gather(1, given[:, None])
    assert float(-p_true.log().mean()) == pytest.approx(nll(found.temperature), rel=1e-5)


def test_too_few_images_are_called_images(files: dict[str, Path]) -> None:
    classifier = opened(files, "plain0")
    assert "5 labelled images are too few" in refusal(fit_temperature, classifier, [noise()], "dnn", 1, 6)
    scores = ConformalScores(None)
    for probs, labels in predict(classifier, [noise()], "dnn", 1, 1.0):
        scores.update(probs.T, labels)
    assert "more than 5 labelled images" in refusal(scores.threshold, 0.9)


@pytest.mark.parametrize(
    ("asked", "mode", "has_dropout", "expected"),
    [
        (None, None, True, 50),
        (3, None, True, 3),
        (1, "bnn", True, 1),
        (None, "dnn", True, 0),
        (None, None, False, 0),
        (1, None, False, 0),
        (0, None, True, "1 or more, got 0"),
        (None, "vq-dnn", True, "use mode dnn or bnn"),
        (None, "bnn", False, "no dropout"),
        (5, None, False, "5 samples"),
        (5, "dnn", True, "use mode bnn"),
    ],
)
def test_passes_are_fifty_where_there_is_dropout(asked, mode, has_dropout, expected):
    if isinstance(expected, int):
        assert default_samples(asked, mode, has_dropout) == expected
    else:
        assert expected in refusal(default_samples, asked, mode, has_dropout)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"height": 48}, "32x48"),
        ({"height": 9000, "width": 9000}, "2097152"),
        ({"classes": ClassList(ANIMALS, tuple((i, i, i) for i in range(6)))}, "void id"),
        ({"classes": ClassList.of_names(CAMVID.names)}, "11 classes (Sky, Building, Pole, ...)"),
        ({"classes": ClassList.of_names((*ANIMALS[:5], "owl"))}, "class 5 is 'owl', but 'hen'"),
        ({"mean": (0.4, 0.4, 0.4)}, "its mean is (0.4, 0.4, 0.4)"),
        ({"height": 64, "width": 64}, "its height is 64"),
    ],
    ids="not-square giant void more-classes other-names other-colours another-size".split(),
)
def test_no_classifier_and_members_of_another_kind_are_refused(files, tmp_path, changes, words):
    path = save_classifier(tmp_path / "other.safetensors", **changes)
    assert words in refusal(lambda: build_members([read_classifier(files["mc0"]), read_classifier(path)]))


def test_a_segmentation_network_is_refused_by_its_architecture() -> None:
    from steadyseg.seg.pretrained import find_checkpoint

    assert "'unet', a segmentation network" in refusal(read_classifier, find_checkpoint("street-tiny"))


LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(4), (100, 50, 50, 10)))


def test_held_out_and_trained_images_are_all_there_are_and_always_the_same() -> None:
    trained, held = split_held_out(LABELS, 0.1)
    assert Counter(LABELS[held].tolist()) == {0: 10, 1: 5, 2: 5, 3: 1}
    assert sorted([*trained, *held]) == list(range(len(LABELS)))
    np.testing.assert_array_equal(held, split_held_out(LABELS, 0.1)[1])
    assert set(held) < set(split_held_out(LABELS, 0.3)[1])
    assert [len(part) for part in split_held_out(LABELS, 0.0)] == [len(LABELS), 0]
    places = split_held_out(np.zeros(1000, np.int64), 0.1)[1]  # spread over the set
    assert len(places) == 100 and places[0] < 100 and places[-1] > 900 and np.diff(places).std() > 3


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.04, "holds out no image of class 3"), (0.96, "no image of class 3 to train on"), (1.0, "[0, 1)")],
)
def test_a_share_that_leaves_a_class_without_images_is_refused(share: float, words: str) -> None:
    assert words in refusal(split_held_out, LABELS, share)


def trained(folder: Path, images: int = 24, held_out: int = 6, share: Any = 0.2) -> CheckpointMeta:
    record = {"config": {"hold_out": share}, "images": images, "held_out": held_out}
    return read_classifier(save_classifier(folder / "t.safetensors", training=record)).meta


def test_the_held_out_pictures_are_those_of_the_training(tmp_path: Path) -> None:
    data = save_pictures(tmp_path / "d", per_class=5)
    config = ClassTrainConfig(data, ClassifierOptions(channels=4), hold_out=0.2)
    meta = prepare_classification(config, Run(tmp_path / "run", torch.device("cpu"))).describe(0.0)
    found = open_split_of(data, "held-out", meta, "t")
    train = open_classification(data, "train")
    _, held = split_held_out(train.labels, 0.2)
    assert len(found) == 6 and found.list_hash == train.subset(held).list_hash != train.list_hash
    test = open_split_of(data, "test", trained(tmp_path), "t")
    assert test.list_hash == open_classification(data, "test").list_hash
    first = data / "train" / train.files[0]
    first.rename(first.with_name(f"zz{first.name}"))
    assert "or on other pictures; give its data" in refusal(open_split_of, data, "held-out", meta, "t")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"share": 0.0}, "held out no pictures"),
        ({"share": "much"}, "held out no pictures"),
        ({"images": 99}, "24 training pictures and 6 held out, but t was trained on 99"),
    ],
    ids=["none", "damaged record", "other data"],
)
def test_held_out_pictures_that_nobody_knows_are_refused(tmp_path: Path, record: dict[str, Any], words: str) -> None:
    data = save_pictures(tmp_path / "d", per_class=5)
    meta = trained(tmp_path, **record)
    assert words in refusal(open_split_of, data, "held-out", meta, "t")
