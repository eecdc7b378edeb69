"""Segmentation training through the command line: killed and resumed, refused, failing; and its loss by hand."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made.methods import opened_by_torch
from made.trainings import CPU, boxes_folder, camvid_names, epochs_logged, events, wait_for_epochs
from made.waiting import PATIENCE_S
from refusals import error_after_work, one_line_error, refusal
from torch import Tensor

from steadyseg.app.cli import main
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import load_checkpoint
from steadyseg.core.model.tensor_file import read_tensors, write_tensors
from steadyseg.core.training.loaders import LONGEST_TMPDIR, load_batches
from steadyseg.core.training.optimizer import learning_rate
from steadyseg.core.training.parts import Run, TrainingParts
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.loss import SegmentationLoss
from steadyseg.seg.options import AugmentOptions, SegTrainConfig, TrainConfig, UNetOptions, check_training
from steadyseg.seg.presets import PRESETS, with_crops_of_size, without_conflicts
from steadyseg.seg.train import AugmentedImages, SegmentationBatches, prepare_segmentation

ROOT = Path(__file__).parents[2]
FLAGS = "--size 48 --channels 2 --batch-size 2 --device cpu --learning-rate 0.01 --config".split()
FLAGS += "crop_height=32 crop_width=48 accumulate=2 precision=fp32 threads=1 loaders=0 evaluate_every=3".split()
"""Eight of the fourteen images are trained on (two steps an epoch), four are held out, two lie between."""
EPOCHS = 12
STRETCH = Path(__file__).with_name("stretch.txt")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen pictures with a box of every class but one."""
    return boxes_folder(tmp_path_factory.mktemp("made"), 14 * [range(1, 12)], background=0)


def arguments(data: Path, run: Path, epochs: int = EPOCHS) -> list[str]:
    where = ["--data", str(data), "--hold-out", str(STRETCH), "--run", str(run)]
    return ["train", "seg", *where, "--epochs", str(epochs), *FLAGS]


def killed_after(epochs: int, command: list[str], run: Path) -> None:
    """Runs the command in a process of its own and kills it (-9) a random moment after that epoch."""
    process = subprocess.Popen([sys.executable, "-m", "steadyseg.app.cli", *command], cwd=ROOT, stderr=subprocess.PIPE)
    try:
        wait_for_epochs(run, epochs, process)
        epoch_s = min(float(event["seconds"]) for event in events(run) if event["event"] == "epoch")
        time.sleep(random.random() * epoch_s)  # inside the next epoch, or while it is saved
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL, errors.decode()  # it was still at work


@pytest.mark.slow
@pytest.mark.parametrize("kills", [(3,), pytest.param((3, 7), marks=pytest.mark.long)])
def test_a_killed_training_ends_bit_for_bit_like_one_that_was_left_alone(data, tmp_path, kills):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(arguments(data, whole)) == 0
    for number, epoch in enumerate(kills):
        killed_after(epoch, [*arguments(data, killed), *["--resume"][:number]], killed)
        assert epoch <= epochs_logged(killed) < EPOCHS and not (killed / "model.safetensors").exists()
    assert main([*arguments(data, killed), "--resume"]) == 0

    (expected, expected_meta), (found, found_meta) = (load_checkpoint(r / "model.safetensors") for r in (whole, killed))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    hours = "hours_of_last_start"
    for meta in (expected_meta, found_meta):
        meta.training.pop(hours)
    assert expected_meta == found_meta
    assert not list(killed.glob(".model*"))
    assert events(killed)[-1]["metrics"] == events(whole)[-1]["metrics"] != {}
    logged = [event["epoch"] for event in events(killed) if event["event"] == "epoch"]
    assert logged == sorted(logged) and logged[-1] == EPOCHS  # At most the current epoch is repeated.
    # The state is saved before its epoch's line is written: each kill may fall between and cost that line.
    assert len(set(logged)) >= EPOCHS - len(kills)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """For sockets, whose names cannot be as long as a test's folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
def test_a_run_is_one_process_s_until_it_ends_in_whatever_way(data, tmp_path, capsys, short_folder):
    run, temporary = tmp_path / "run", short_folder
    command = [*arguments(data, run, epochs=10**6), "--config", "loaders=1"]
    for number, code, flags in ((signal.SIGTERM, 130, []), (signal.SIGKILL, -signal.SIGKILL, ["--resume"])):
        done = epochs_logged(run)
        process = subprocess.Popen(
            [sys.executable, "-m", "steadyseg.app.cli", *command, *flags],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(temporary)},
            start_new_session=True,
        )
        try:
            wait_for_epochs(run, done + 1, process)
            assert "another training is at work" in error_after_work(capsys, *command, "--resume")
            if number == signal.SIGTERM:  # as `timeout` and service managers send it: to the data workers too
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            errors = process.communicate(timeout=PATIENCE_S)[1]
        finally:
            process.kill()
        assert process.returncode == code and "Traceback" not in errors, errors
        # at once, though a killed process leaves its data workers behind for some seconds
        assert "--resume with other" in error_after_work(capsys, *arguments(data, run, epochs=3), "--resume")
        if number == signal.SIGTERM:
            assert not list(temporary.glob("pymp-*")) and not list(run.glob(".*.*"))


def test_a_folder_too_long_for_sockets_is_refused(monkeypatch: pytest.MonkeyPatch, short_folder: Path) -> None:
    long = short_folder / ((LONGEST_TMPDIR - len(str(short_folder)) - 1) * "x")
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert list(load_batches([torch.ones(1)], 1)) == [torch.ones(1, 1)]
    monkeypatch.setattr(tempfile, "tempdir", f"{long}/")
    with pytest.raises(InputError, match="--config loaders=0"):
        next(load_batches([torch.ones(1)], 1))


@pytest.mark.slow
def test_the_trained_network_has_learnt_and_opens(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert main(arguments(data, run, epochs=6)) == 0
    losses = [event["loss"] for event in events(run) if event["event"] == "epoch"]
    assert len(losses) == 6 and losses[-1] < losses[0]
    segmenter = opened_by_torch(run / "model.safetensors", mode="dnn")
    assert (segmenter.meta.height, segmenter.meta.width) == (48, 64)
    assert segmenter.meta.training["images"] == 8 and segmenter.meta.training["config"]["loop"]["epochs"] == 6
    assert segmenter.meta.training["config"]["data"] == data.name  # no path of this machine in what is handed on
    assert str(data.parent) not in (run / "model.json").read_text()


@pytest.fixture(scope="module")
def done(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of one epoch."""
    run = tmp_path_factory.mktemp("runs") / "done"
    assert main(arguments(data, run, epochs=1)) == 0
    return run


@pytest.fixture
def run(done: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may change."""
    return shutil.copytree(done, tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}


def test_a_new_run_or_one_of_other_flags_changes_nothing_of_an_old_one(data, done, capsys):
    before, command = contents(done), arguments(data, done, epochs=1)
    assert "--resume" in error_after_work(capsys, *command)
    for flags in ("--epochs 2", "--config flip=0.1"):
        for words in (command, ["train", "seg", "--run", done]):
            assert "give --run and --resume alone" in error_after_work(capsys, *words, *flags.split(), "--resume")
    assert contents(done) == before


def test_a_resume_needs_the_run_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").unlink()
    assert main(["train", "seg", "--run", str(run), "--resume"]) == 0
    assert (run / "model.safetensors").stat().st_size == pytest.approx(len(model), abs=8)
    said = " ".join(capsys.readouterr().err.split())
    assert "was finished before" in said and f"--init {run / 'model.safetensors'}" in said


def test_a_resume_of_nothing_is_refused_and_leaves_nothing(data: Path, tmp_path: Path, capsys: Any) -> None:
    for run in (tmp_path, tmp_path / "absent"):
        assert "no training to resume" in error_after_work(capsys, *arguments(data, run), "--resume")
    assert contents(tmp_path) == {}


def test_a_resume_with_a_damaged_configuration_is_refused(data, run, capsys):
    for damaged in ('{"data": ', "[" * 100_000, "[5]"):
        (run / "config.json").write_text(damaged)
        assert "config.json" in error_after_work(capsys, *arguments(data, run, epochs=1), "--resume")


@pytest.mark.parametrize("header", ["[]", '{"epochs_done": 0}', '{"epochs_done": 2}', '{"epochs_done": 1e999}'])
def test_a_resume_from_a_state_of_no_such_epoch_is_refused(data, run, header, capsys):
    tensors, _ = read_tensors(run / "state.safetensors")
    write_tensors(run / "state.safetensors", tensors, header)
    message = error_after_work(capsys, *arguments(data, run, epochs=1), "--resume")
    assert "state.safetensors" in message and "expected 1 to 1 epochs done" in message


def test_a_lock_that_is_a_link_is_refused(data: Path, run: Path, tmp_path: Path, capsys: Any) -> None:
    elsewhere = tmp_path / "elsewhere"
    (run / ".lock").unlink(missing_ok=True)
    elsewhere.write_text("mine")
    (run / ".lock").symlink_to(elsewhere)
    assert "is a link" in error_after_work(capsys, *arguments(data, run), "--resume")
    assert elsewhere.read_text() == "mine"


@pytest.mark.slow
def test_loaders_without_shared_memory_are_one_line(tmp_path: Path) -> None:
    program = """
import torch
from steadyseg.core.training.loaders import load_batches
list(load_batches([torch.zeros(100_000)] * 4, 2, batch_size=1, order=range(4)))
"""
    inside = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$0" -c "$1"'
    command = ["unshare", "--mount", "sh", "-c", inside, sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if "InputError" not in done.stderr and "Traceback" not in done.stderr:
        pytest.skip(f"no small /dev/shm can be mounted here ({done.stderr.strip()[:80]})")
    assert "loaders=0" in done.stderr.strip().splitlines()[-1]


def test_a_resume_with_another_networks_optimizer_is_refused(data, run, capsys):
    tensors, header = read_tensors(run / "state.safetensors")
    key = next(key for key, value in tensors.items() if key.startswith("optimizer.") and value.ndim)
    write_tensors(run / "state.safetensors", tensors | {key: tensors[key].flatten()[:1]}, header)
    message = error_after_work(capsys, *arguments(data, run, epochs=1), "--resume")
    assert f"{key} has the shape [1]" in message and "resume with the flags it began with" in message


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: record["loop"].update(step_epoch=31), "program, whose settings differ in loop.step_epoch;"),
        (lambda record: record["unet"].pop("skip"), "program, whose settings differ in unet.skip;"),
        (lambda record: record.update(processes=2), "processes (2 then, 1 now)"),
    ],
)
def test_a_run_begun_with_other_settings_or_processes_is_refused(data, run, capsys, change, says):
    record = json.loads((run / "config.json").read_text())
    change(record)
    (run / "config.json").write_text(json.dumps(record))
    assert says in error_after_work(capsys, *arguments(data, run, epochs=1), "--resume")


@pytest.mark.slow
def test_the_number_format_is_decided_once(data, tmp_path, monkeypatch, capsys):
    """Said, recorded, and kept by a resumed run on a processor that would choose another one."""
    run, command = tmp_path / "run", [*arguments(data, tmp_path / "run", epochs=1), "--config"]
    monkeypatch.setattr("steadyseg.core.training.run.training_precision", lambda device: "bf16")
    assert main([*command, "precision=auto"]) == 0
    assert "on cpu in bf16;" in " ".join(capsys.readouterr().err.split())
    record = load_checkpoint(run / "model.safetensors")[1].training["config"]
    began_with = json.loads((run / "config.json").read_text())
    assert record["loop"]["precision"] == began_with["loop"]["precision"] == "bf16"
    monkeypatch.setattr("steadyseg.core.training.run.training_precision", lambda device: "fp32")
    assert "precision (bf16 then, fp32 now)" in one_line_error(capsys, *command, "precision=auto", "--resume")
    assert main([*command, "precision=bf16", "--resume"]) == 0


def test_a_run_moves_with_its_data_to_another_place_but_not_to_other_data(data, done, tmp_path, capsys):
    """With a picture less, other pictures would be held out."""
    shutil.copytree(data, tmp_path / data.name)
    shutil.copytree(done, tmp_path / "run")
    command = [*arguments(tmp_path / data.name, tmp_path / "run", epochs=1), "--resume"]
    assert main(command) == 0
    min((tmp_path / data.name / "train").iterdir()).unlink()
    assert "images or labels have changed" in error_after_work(capsys, *command)


def test_a_loss_that_is_no_number_ends_with_code_one_and_keeps_the_last_epoch(data, tmp_path, capsys):
    """From the second epoch on the learning rate is 1e36 times higher."""
    run = tmp_path / "run"
    settings = "schedule=step step_epochs=1 warmup=0 step_factor=1e36 clip_norm=0 optimizer=sgd".split()
    command = [*arguments(data, run, epochs=4), "--config", *settings]
    message = error_after_work(capsys, *command, code=1)
    assert "epoch 2, step" in message and "smaller --learning-rate" in message
    assert epochs_logged(run) == 1 and not (run / "model.safetensors").exists()
    from safetensors.torch import load_file

    assert all(tensor.isfinite().all() for tensor in load_file(run / "state.safetensors").values())


OUTSIDE = """
crop_height=0 crop_width=-3 flip=2 flip=-0.5 brightness=-1 contrast=-1 saturation=-1 hue=0.7 scale_min=0 scale_max=0.5
paste=2 corrupt=2 batch_size=0 accumulate=0 epochs=0 size=16 learning_rate=-1 loaders=-1 threads=-1 average_decay=1.5
warmup=-1 weight_decay=-1 clip_norm=-1 evaluate_every=-1 soften=nan auxiliary=-1 full_image_epochs=61
unzoomed_epochs=61
"""


@pytest.mark.parametrize("setting", OUTSIDE.split())
def test_a_setting_outside_its_range_is_refused(setting: str) -> None:
    name, value = setting.split("=")
    config = SegTrainConfig()
    for part in ("augment", "loop", ""):
        holder = getattr(config, part) if part else config
        if hasattr(holder, name):
            changed = dataclasses.replace(holder, **{name: float(value)})
            config = dataclasses.replace(config, **{part: changed}) if part else changed
    assert re.search(rf"{name.replace('_', '.')} must lie in", refusal(check_training, config))


SENSELESS = """
--batch-size 9 --config accumulate=1 | --hold-out nosuchfile.txt | --config depth=9 | --data nosuchfolder |
--classes nosuchfile.json | --learning-rate nan | --config corrupt=1 corruptions=
"""


@pytest.mark.parametrize("flags", [one.strip() for one in SENSELESS.split("|")])
def test_settings_that_make_no_sense_are_refused_before_anything_is_written(data, tmp_path, flags, capsys):
    error_after_work(capsys, *arguments(data, tmp_path / "run", epochs=1), *flags.split())
    assert not (tmp_path / "run").exists()


def test_a_missing_package_is_said_before_the_run_folder_is_taken(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imagecorruptions", None)
    command = [*arguments(data, tmp_path / "run", epochs=1), "--config", "corrupt=0.7"]
    assert ".[calibrate]" in error_after_work(capsys, *command) and not (tmp_path / "run").exists()


def prepared(data: Path, run: Path, class_weights: str = "none", **changes: Any) -> TrainingParts:
    config = SegTrainConfig(
        data=data,
        unet=UNetOptions(channels=1),
        size=48,
        class_weights=class_weights,
        loaders=0,  # type: ignore[arg-type]
        augment=AugmentOptions(crop_height=32, crop_width=48),
        loop=TrainConfig(batch_size=2),
    )
    return prepare_segmentation(dataclasses.replace(config, **changes), Run(run, CPU))


@pytest.mark.parametrize("class_weights", ["none", "softened"])
def test_the_loss_is_weighted_by_class_and_void_does_not_count(data: Path, tmp_path: Path, class_weights: str) -> None:
    made = prepared(data, tmp_path, class_weights)
    assert isinstance(made.loss, SegmentationLoss)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 11, 5, 7, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 12, (3, 5, 7), generator=generator)  # 11 is void
    total, weight = made.loss(logits, labels)
    expected_total = expected_weight = 0.0
    table, of_class = logits.permute(0, 2, 3, 1).reshape(-1, 11).numpy(), made.loss.weights.double().numpy()
    for row, label in zip(table, labels.flatten().tolist(), strict=True):
        if label == 11:
            continue
        nll = np.log(np.exp(row).sum()) - row[label]
        expected_total += of_class[label] * nll
        expected_weight += of_class[label]
    assert float(total) == pytest.approx(expected_total, rel=1e-9)
    assert float(weight) == pytest.approx(expected_weight, rel=1e-6)
    assert len(set(of_class.tolist())) == (1 if class_weights == "none" else 11)


def test_the_last_epochs_see_whole_pictures(data: Path, tmp_path: Path) -> None:
    loop, augment = TrainConfig(epochs=5, batch_size=2), AugmentOptions(crop_height=32, crop_width=48, scale_min=0.75)
    made = prepared(data, tmp_path, full_image_epochs=2, unzoomed_epochs=1, loop=loop, augment=augment)
    sizes = [{tuple(images.shape[-2:]) for images, _ in batches(made, epoch)} for epoch in range(5)]
    examples = augmented(made)
    whole = examples.picture_size
    assert sizes == [{(32, 48)}] * 3 + [{whole}] * 2 and whole != (32, 48)
    for epoch in (3, 4):
        assert all((labels != 11).any(1).any(0).all() for _, labels in batches(made, epoch)), "nothing is padded"
    crops = [examples.crops(epoch) for epoch in (2, 3, 4)]
    assert [(crop.scale_min, crop.scale_max) for crop in crops] == [(0.75, 1.5), (1.0, 1.5), (1.0, 1.0)]


def augmented(made: TrainingParts) -> AugmentedImages:
    assert isinstance(made.batches, SegmentationBatches) and isinstance(made.batches.load.examples, AugmentedImages)
    return made.batches.load.examples


def batches(made: TrainingParts, epoch: int) -> list[tuple[Tensor, Tensor]]:
    return list(made.batches(epoch))


def test_batches_depend_on_seed_and_epoch_alone_and_not_on_workers(data: Path, tmp_path: Path) -> None:
    made = prepared(data, tmp_path)
    first = batches(made, 3)
    torch.manual_seed(77)
    again, other = batches(made, 3), batches(made, 4)
    assert len(first) == made.steps_per_epoch == 7
    for same in (again, batches(prepared(data, tmp_path, loaders=1), 3)):
        assert all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(first, same, strict=True))
    assert not torch.equal(first[0][0], other[0][0])
    assert first[0][0].shape == (2, 3, 32, 48) and first[0][1].shape == (2, 32, 48)


def test_held_out_images_are_named_in_the_record_and_never_trained_on(data: Path, tmp_path: Path) -> None:
    stretch = tmp_path / "stretch.txt"
    stretch.write_text("05 07\n")
    made = prepared(data, tmp_path / "run", hold_out=stretch)
    split, images = open_split(data, "train"), augmented(made).images
    assert made.describe(0.0).training["held_out"] == ["05", "06", "07"]
    same = [[i for i in range(14) if np.array_equal(split[i][0], image)] for image, _ in images]
    assert same == [[i] for i in (0, 1, 2, 10, 11, 12, 13)]


def test_camvid_s_stretches_are_held_out_unless_told_otherwise(tmp_path: Path) -> None:
    names = camvid_names()
    data = boxes_folder(tmp_path / "data", len(names) * [range(1, 3)], background=0, names=names)
    made = prepared(data, tmp_path / "run")
    assert (made.images, made.held_out) == (6, 40)
    assert prepared(data, tmp_path / "all", hold_out=Path("none")).images == 58


def test_crops_follow_the_size_unless_they_have_their_own() -> None:
    preset = PRESETS["cpu"]
    assert with_crops_of_size(preset, preset) == preset
    small = with_crops_of_size(dataclasses.replace(preset, size=180), preset).augment
    assert (small.crop_height, small.crop_width) == (128, 192)
    own = dataclasses.replace(preset, size=180, augment=dataclasses.replace(preset.augment, crop_width=160))
    assert with_crops_of_size(own, preset) == own


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_any_number_of_epochs(name: str) -> None:
    preset = dataclasses.replace(PRESETS[name], init="runs/first/model.safetensors")
    config = dataclasses.replace(preset, loop=dataclasses.replace(preset.loop, epochs=2))
    found, remarks = without_conflicts(config, preset)
    check_training(found)
    assert len(remarks) == (found != config) == (preset.full_image_epochs > 2) and without_conflicts(found, preset) == (
        found,
        (),
    )
    own = dataclasses.replace(config, full_image_epochs=3)
    assert "full_image_epochs must lie in 0..2, got 3" in refusal(check_training, without_conflicts(own, preset)[0])


def test_settings_that_nobody_named_fit_a_short_training_of_few_pictures(tmp_path, capsys):
    data, run = boxes_folder(tmp_path / "data", 3 * [range(1, 12)], background=0), tmp_path / "run"
    words = ["train", "seg", "--preset", "unet-s", "--epochs", "2", "--data", str(data), "--run", str(run)]
    words += "--size 48 --channels 2 --device cpu --config precision=fp32 threads=1 loaders=0 corrupt=0".split()
    assert main(words) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "lowered to fit your settings: full_image_epochs from 120 to 2, unzoomed_epochs from 40 to 2" in said
    assert "lowered to fit 3 images: batch_size to 2" in said
    record = load_checkpoint(run / "model.safetensors")[1].training["config"]
    assert (record["full_image_epochs"], record["loop"]["batch_size"]) == (2, 2)
    assert main(["train", "seg", "--resume", "--run", str(run), "--device", "cpu"]) == 0
    named = [*words, "--batch-size", "5", "--run", str(tmp_path / "named")]
    assert "3 training images do not fill one step of 5" in error_after_work(capsys, *named)


def test_a_preset_begins_with_no_network_that_it_makes() -> None:
    """Or nobody could train it again."""
    assert not [name for name, preset in PRESETS.items() if preset.init]


@pytest.mark.parametrize("name", ["unet-s", "realtime", "mobile"])
def test_the_training_on_the_street_makes_what_a_preset_begins_with(name: str) -> None:
    before, after = PRESETS[f"{name}-street"], PRESETS[name]
    assert (before.network, before.unet, before.smp, before.size) == (after.network, after.unet, after.smp, after.size)
    assert str(before.data) == "street" and before.loop.epochs < after.loop.epochs


def test_the_published_training_has_its_rates_and_no_warm_up() -> None:
    """arXiv 2105.12639 A.2: 1e-3, from epoch 100 of 130 on 2e-4."""
    loop = PRESETS["replica"].loop
    rates = [learning_rate(loop, step, 7, 7 * loop.epochs) for step in range(7 * loop.epochs)]
    assert rates == [1e-3] * 700 + [1e-3 * 0.2] * 210
