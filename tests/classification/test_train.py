"""Classification training by the command: learnt, resumed, refused; its loss by hand, its presets' rates."""

import dataclasses
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.trainings import CPU, colours_folder
from PIL import Image
from refusals import error_after_work, refusal
from torch import Tensor

from steadyseg.app.cli import main
from steadyseg.classification.data.open import open_classification, open_split_of, split_held_out
from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.layout import drop_unsuited
from steadyseg.classification.options import CLASS_PRESETS, ClassifierOptions, ClassTrainConfig, PictureOptions
from steadyseg.classification.train import ClassificationBatches, measured_colours, prepare_classification
from steadyseg.core.dropout import is_stochastic
from steadyseg.core.model.checkpoint import load_checkpoint, load_weights
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.optimizer import learning_rate
from steadyseg.core.training.parts import Run, TrainingParts

FLAGS = "--network resnet18 --channels 2 --batch-size 8 --hold-out 0.25 --device cpu --learning-rate 0.05".split()
FLAGS += "--config precision=fp32 threads=1 loaders=0 size=16 evaluate_every=2".split()
"""24 of the 32 pictures are trained on (three steps an epoch), eight are held out."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    colours = ((160, 20, 20), (20, 160, 20), (20, 20, 160), (150, 150, 20))
    named = {f"class{label}": colour for label, colour in enumerate(colours)}
    return colours_folder(tmp_path_factory.mktemp("made"), named, 8)


def arguments(data: Path, run: Path, epochs: int = 4) -> list[str]:
    return ["train", "classification", "--data", str(data), "--run", str(run), "--epochs", str(epochs), *FLAGS]


def config_of(data: Path, **changes: Any) -> ClassTrainConfig:
    loop = {"batch_size": 8, "epochs": 4, "precision": "fp32", "threads": 1, "optimizer": "sgd", "learning_rate": 0.05}
    loop |= changes.pop("loop", {})
    base: dict[str, Any] = {
        "data": data,
        "classifier": ClassifierOptions(channels=2, dropout=0.3, smoothing=True),
        "size": 16,
        "loaders": 0,
        "loop": TrainConfig(**loop),  # type: ignore[arg-type]
    }
    return ClassTrainConfig(**base | changes)


def prepared(data: Path, run: Path, **changes: Any) -> TrainingParts:
    return prepare_classification(config_of(data, **changes), Run(run, CPU))


@pytest.mark.slow
def test_the_command_trains_a_network_that_has_learnt_and_can_be_used(data, tmp_path, capsys):
    run = tmp_path / "run"
    assert main([*arguments(data, run, epochs=6), "--dropout", "0.1", "--smoothing"]) == 0
    assert "convolutions keep the default memory layout" in capsys.readouterr().err, "widths of 2 to 8, strided"
    events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert len(events) == 6 * 3 + 6 and epochs[-1]["loss"] < epochs[0]["loss"]
    assert [bool(event["metrics"]) for event in epochs] == [False, True] * 3
    assert epochs[-1]["metrics"].keys() == {"accuracy", "nll", "ece"}

    tensors, meta = load_checkpoint(run / "model.safetensors")
    network = build_classifier(meta.options, len(meta.classes))
    load_weights(network, tensors, run)
    assert meta.architecture == "classifier" and (meta.height, meta.width) == (16, 16)
    assert meta.classes.names == ("class0", "class1", "class2", "class3") and meta.classes.void is None
    assert meta.mean == (0.485, 0.456, 0.406) and is_stochastic(network)
    assert (meta.training["images"], meta.training["held_out"]) == (24, 8)
    assert meta.training["config"]["classifier"]["smoothing"] and meta.training["config"]["data"] == data.name
    assert str(data.parent) not in (run / "model.json").read_text()


@pytest.mark.slow
def test_a_run_is_not_overwritten_and_goes_on_with_its_own_flags_alone(data, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(arguments(data, run, epochs=1)) == 0
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert "--resume" in error_after_work(capsys, *arguments(data, run, epochs=1))
    for name, flags in (("mixup", "--config mixup=0.3"), ("hold-out", "--hold-out 0.3")):
        message = error_after_work(capsys, *arguments(data, run, epochs=1), *flags.split(), "--resume")
        assert f"--resume with other {name}" in message
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    "flags",
    [
        "--batch-size 25 --hold-out 0.25",
        "--batch-size 7 --config mixup=1",
        "--hold-out 1",
        "--hold-out 0.01",
        "--network resnet19",
        "--data nosuchfolder",
        "--config flip=2",
        "--config mixup=-1",
        "--config rand_augment=strong",
        "--config size=-1",
        "--network vgg11 --config size=4",
        "--network vgg11 --config stem=true",
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_written(data, tmp_path, flags, capsys):
    error_after_work(capsys, *arguments(data, tmp_path / "run", epochs=1), *flags.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_zipped_pictures_train_evaluate_and_calibrate(tmp_path: Path) -> None:
    """Pictures are normalised by their own colours; the checkpoint's record finds the held-out ones again."""
    generator, drawn = np.random.default_rng(0), np.array([(160, 20, 20), (20, 160, 20)], np.uint8)
    data = tmp_path / "zipped"
    data.mkdir()
    for split in ("train", "test"):
        with zipfile.ZipFile(data / f"{split}.zip", "w") as archive:
            for number in range(480):  # every sixth has the other class's colour: a temperature for that exists
                label, file = number % 2, io.BytesIO()
                colour = drawn[label ^ (number // 2 % 6 == 0)]
                Image.fromarray(generator.integers(0, 90, (16, 16, 3), dtype=np.uint8) + colour).save(file, "PNG")
                archive.writestr(f"{'ab'[label]}/{number}.png", file.getvalue())
    run, report = tmp_path / "run", tmp_path / "report.json"
    assert main([*arguments(data, run, epochs=2), "--config", "size=0"]) == 0
    model = str(run / "model.safetensors")
    meta = load_checkpoint(Path(model))[1]
    trained, held = split_held_out(np.repeat([0, 1], 240), 0.25)
    images = open_classification(data, "train")
    assert (meta.training["images"], meta.training["held_out"], meta.height) == (360, 120, 16)
    assert meta.mean == measured_colours(images.subset(trained).images)[0]  # type: ignore[attr-defined]
    assert main(["evaluate", model, "--data", str(data), "--split", "held-out", "--report", str(report)]) == 0
    assert json.loads(report.read_text())["frame_list_hash"] == images.subset(held).list_hash
    fitted = tmp_path / "fitted.safetensors"
    assert main(["calibrate", model, "--data", str(data), "--split", "held-out", "-o", str(fitted)]) == 0
    assert load_checkpoint(fitted)[1].calibration
    assert open_split_of(data, "trained", meta, model).list_hash == images.subset(trained).list_hash


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_picture_that_cannot_be_read_is_named_in_one_line(data: Path, tmp_path: Path, workers: int) -> None:
    broken = shutil.copytree(data, tmp_path / "data")
    bad = broken / "train" / "class2" / "3.png"
    bad.write_bytes(b"junk")
    assert str(bad) in refusal(list, prepared(broken, tmp_path / "run", loaders=workers).batches(0))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_the_smoothed_cross_entropy_and_the_size_of_the_batch(data, tmp_path, smoothing):
    made = prepared(data, tmp_path, pictures=PictureOptions(label_smoothing=smoothing))
    logits = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 3, 1, 1, 2])
    shares = torch.full((5, 4), smoothing / 4, dtype=torch.float64)
    shares[range(5), labels] += 1 - smoothing
    expected = -(shares * (logits - logits.exp().sum(1, keepdim=True).log())).sum()
    total, weight = made.loss(logits, labels)
    assert float(total) == pytest.approx(float(expected), rel=1e-12) and float(weight) == 5
    mixed, mixed_weight = made.loss(logits, shares)  # smoothed where they were mixed
    assert float(mixed) == pytest.approx(float(expected), rel=1e-12) and float(mixed_weight) == 5


def all_batches(made: TrainingParts, epoch: int) -> list[Tensor]:
    return [part.clone() for batch in made.batches(epoch) for part in batch]


@pytest.mark.parametrize(
    "pictures", [PictureOptions(), CLASS_PRESETS["adamw-imagenet"].pictures], ids=["weak", "strong"]
)
def test_batches_depend_on_seed_and_epoch_alone_and_not_on_workers(data, tmp_path, pictures):
    made = prepared(data, tmp_path, pictures=pictures)
    first = all_batches(made, 3)
    torch.manual_seed(5)
    again = all_batches(made, 3), all_batches(prepared(data, tmp_path, pictures=pictures, loaders=1), 3)
    assert all(torch.equal(*pair) for others in again for pair in zip(first, others, strict=True))
    assert not torch.equal(first[0], all_batches(made, 4)[0])
    assert len(first) == 2 * made.steps_per_epoch == 8 and first[0].shape == (8, 3, 16, 16)
    assert first[1].shape == ((8, 4) if pictures.mixup else (8,))


def test_pictures_are_normalised_and_keep_their_labels(data: Path, tmp_path: Path) -> None:
    made = prepared(data, tmp_path, pictures=PictureOptions(flip=0.0))
    meta = made.describe(0.0)
    mean, std = (torch.tensor(values)[:, None, None] for values in (meta.mean, meta.std))
    brightest = {0: {0}, 1: {1}, 2: {2}, 3: {0, 1}}  # channels of the four colours
    for pictures, labels in made.batches(0):
        for picture, label in zip(pictures, labels.tolist(), strict=True):
            colour = (picture * std + mean)[:, 4:12, 4:12].mean((1, 2))  # clear of the padding
            assert float(colour.min()) >= 0 and float(colour.max()) <= 1
            assert int(colour.argmax()) in brightest[label]


def test_held_out_pictures_are_never_trained_on_and_evaluated_without_dropout(data: Path, tmp_path: Path) -> None:
    made = prepared(data, tmp_path, hold_out=0.25)
    assert isinstance(made.batches, ClassificationBatches) and made.evaluate
    images, held_out = made.batches.images, made.evaluate.keywords["data"]  # type: ignore[attr-defined]
    assert np.bincount(held_out.labels).tolist() == [2] * 4 and np.bincount(images.labels).tolist() == [6] * 4
    assert not set(images.files) & set(held_out.files)
    network = made.network.eval()
    first, second = made.evaluate(network), made.evaluate(network)
    assert first == second and is_stochastic(network)  # dropout is on again
    assert 0 <= first["accuracy"] <= 1 and first["nll"] > 0


def test_colours_are_those_of_all_pixels() -> None:
    images = np.random.default_rng(0).integers(0, 90, (4, 8, 8, 3), dtype=np.uint8)
    images[..., 2] = 51
    mean, std = measured_colours(images)
    np.testing.assert_allclose(mean, images.mean((0, 1, 2)) / 255, atol=5e-5)
    np.testing.assert_allclose(std[:2], images.std((0, 1, 2))[:2] / 255, atol=5e-5)
    assert mean[2] == 0.2 and std[2] == 1e-3  # no division by 0 where a channel never changes


def rates(name: str, steps_per_epoch: int = 10) -> list[float]:
    loop = CLASS_PRESETS[name].loop
    total = loop.epochs * steps_per_epoch
    return [learning_rate(loop, step, steps_per_epoch, total) for step in range(total)]


def test_the_published_rates_of_sgd() -> None:
    """One epoch of linear warm-up, then 200 epochs of which the 60th, 120th and 160th end with a fall by 0.2."""
    found = rates("sgd")
    expected = [0.1] * 600 + [0.02] * 600 + [0.004] * 400 + [0.0008] * 400
    assert found == pytest.approx([0.01 * (i + 1) for i in range(10)] + expected, rel=1e-12)
    imagenet = rates("sgd-imagenet")
    assert imagenet[10:] == pytest.approx([0.1] * 300 + [0.01] * 300 + [0.001] * 200 + [0.0001] * 100, rel=1e-12)


@pytest.mark.parametrize("name", ["adamw", "adamw-imagenet"])
def test_the_published_rates_of_adamw(name: str) -> None:
    """Five epochs of linear warm-up, then a cosine of 300 epochs to zero."""
    found = rates(name)
    fall = [1.25e-4 * (1 + np.cos(np.pi * i / 3000)) / 2 for i in range(3000)]
    assert found == pytest.approx([1.25e-4 * (i + 1) / 50 for i in range(50)] + fall, rel=1e-9)


def test_a_preset_keeps_of_a_network_what_it_has_and_what_the_user_asks_for_stays() -> None:
    for preset, model, expected in (
        ("sgd-imagenet", "resnet50", {"stem": True}),
        ("adamw-imagenet", "vgg16", {"stem": False, "stochastic_depth": 0.0}),
        ("small", "timm:resnet18", {"channels": 64}),
        ("adamw-imagenet", "timm:deit_tiny_patch16_224", {"stem": False, "stochastic_depth": 0.1}),
    ):
        base = CLASS_PRESETS[preset]
        config = dataclasses.replace(base, classifier=dataclasses.replace(base.classifier, network=model))
        found = drop_unsuited(config, base)
        assert {name: getattr(found.classifier, name) for name in expected} == expected
        assert dataclasses.replace(found, classifier=config.classifier) == config
        with torch.device("meta"):
            build_classifier(found.classifier, 10)
    base = CLASS_PRESETS["small"]
    config = dataclasses.replace(base, classifier=ClassifierOptions(network="timm:resnet18", channels=16))
    assert drop_unsuited(config, base) == config
    assert "channels" in refusal(build_classifier, config.classifier, 10)


def test_cifar_is_seen_as_published(data_dir: Path, tmp_path: Path) -> None:
    made = prepared(data_dir / "cifar10", tmp_path, size=0, loop={"batch_size": 128})
    meta = made.describe(0.0)
    assert (meta.height, made.steps_per_epoch, len(meta.classes)) == (32, 39, 10)
    assert (meta.mean, meta.std) == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    pictures, labels = next(iter(made.batches(0)))
    assert pictures.shape == (128, 3, 32, 32) and labels.shape == (128,) and abs(float(pictures.mean())) < 0.5


def test_pretrained_weights_bring_their_own_colours(data, tmp_path, monkeypatch):
    """The record says what the training began with; the options of its network say that the weights are in the file."""
    options = ClassifierOptions(network="timm:vit_tiny_patch16_224", pretrained=True)
    network = build_classifier(dataclasses.replace(options, pretrained=False), 4)  # without fetching them
    monkeypatch.setattr("steadyseg.classification.train.build_classifier", lambda options, classes: network)
    meta = prepared(data, tmp_path, classifier=options, size=224).describe(1.0)
    assert (meta.mean, meta.std) == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert meta.options["pretrained"] is False and meta.training["config"]["classifier"]["pretrained"]
