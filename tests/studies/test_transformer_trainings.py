"""The trainings of the study of transformers: their flags, the build-up rule, and a queue that resumes."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made.classifier import save_classifier, save_pictures
from PIL import Image

from steadyseg.app.cli import main
from steadyseg.app.train import command as train_command
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.model.checkpoint import load_checkpoint
from steadyseg.core.training.loop import EpochDone
from steadyseg.studies.harness.networks import PROJECT
from steadyseg.studies.transformers import measure
from steadyseg.studies.transformers import train as queue
from steadyseg.studies.transformers.build_up import build_up, next_attention, row_of
from steadyseg.studies.transformers.rates import chosen_rate
from steadyseg.studies.transformers.rows import PILOTS, RATE, RATES, ROWS, Row
from steadyseg.studies.transformers.tables import right_of


def test_every_row_has_a_name_of_its_own_and_equally_many_steps() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    adamw = [row for row in ROWS if row.name.startswith("adamw")]
    assert len({row.epochs * (row.subset // 96) for row in adamw}) == 1
    whole = [f"cifar10-resnet18-{name}{end}" for end in ("", "-again") for name in ("plain", "mc-smooth")]
    assert [row.name for row in ROWS if not row.subset] == whole
    flags = ROWS[3].arguments(Path("data"), Path("runs"))
    assert "init=runs/cifar10-resnet18-mc-smooth/model.safetensors" in flags
    assert all(row.seed in (0, 1) for row in ROWS)


def test_the_rate_of_the_best_pilots_goes_into_every_row_that_needs_one(tmp_path: Path) -> None:
    """A network alone does not choose: the larger rate is best for one of them and worse on average."""
    found = {row.name: 0.3 for rows in PILOTS.values() for row in rows}
    found |= {
        "rate-0.0005-vit6": 0.4,
        "rate-0.0005-preresnet18": 0.42,
        "rate-0.002-vit6": 0.45,
        "rate-0.002-preresnet18": 0.35,
    }
    assert chosen_rate(lambda row: found[row.name]) == 5e-4
    assert chosen_rate(lambda row: found[row.name] if row.name != "rate-0.002-vit6" else None) is None
    needing = [row for row in ROWS if row.needs_rate]
    assert {row.name.split("-")[0] for row in needing} == {"adamw"} and row_of((0, 0, 0, 1), 0).needs_rate
    for row in needing:
        flags = row.arguments(tmp_path, tmp_path, 5e-4)
        assert flags[flags.index("--learning-rate") + 1] == "0.0005" and not any("{" in flag for flag in flags)
    for rate, rows in PILOTS.items():
        for row in rows:
            flags = row.arguments(tmp_path, tmp_path)
            assert float(flags[flags.index("--learning-rate") + 1]) == rate and row.epochs == 12


def test_the_build_up_moves_to_an_earlier_stage_where_attention_does_not_help() -> None:
    """Accuracies by layout; the rule keeps what is better than the best before."""
    found = {"0000": 0.50, "0001": 0.52, "0002": 0.51, "0011": 0.53, "0021": 0.55, "0031": 0.54, "0121": 0.56}
    rows = list(build_up(lambda row: found[row.name.split("-")[2]]))
    assert [row.name for row in rows[:7]] == [f"build-up-{layout}-0" for layout in found]
    assert [row.name for row in rows[7:]] == [f"build-up-{layout}-1" for layout in found]
    assert rows[5].flags[-1] == "attention=0,0,3,1" and {row.epochs for row in rows} == {15}


def test_the_build_up_ends_where_no_stage_is_left_or_a_training_is_not_done() -> None:
    nothing = [((0, 0, 0, 0), 0.5), *((tuple(int(i == s) for i in range(4)), 0.4) for s in (3, 2, 1, 0))]
    assert next_attention(nothing[:1]) == (0, 0, 0, 1) and next_attention(nothing[:3]) == (0, 1, 0, 0)
    assert next_attention(nothing) is None
    full = [((0, 0, 0, 0), 0.1), ((0, 0, 0, 1), 0.2), ((0, 0, 0, 2), 0.3)]
    assert next_attention(full) == (0, 0, 1, 2), "the last stage has no room for a third"
    assert [row.name for row in build_up(lambda row: None)] == [row_of((0, 0, 0, 0), 0).name]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, generator = tmp_path_factory.mktemp("zipped"), np.random.default_rng(0)
    with zipfile.ZipFile(root / "train.zip", "w") as archive:
        for label in range(2):
            for number in range(60):
                file = io.BytesIO()
                pixels = generator.integers(0, 100, (16, 16, 3), dtype=np.uint8) + np.uint8(120 * label)
                Image.fromarray(pixels).save(file, "PNG")
                archive.writestr(f"{label}/{number}.png", file.getvalue())
    return root


def small(name: str, *flags: str) -> Row:
    return Row(
        name, ("--preset", "small", "--hold-out", "0.1", "--channels", "2", "--batch-size", "8", *flags), 0, 6, 80
    )


@pytest.mark.long
def test_the_queue_keeps_what_is_done_goes_on_with_what_is_not_and_tells_what_failed(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        small("done"),
        small("broken", "--network", "resnet19"),
        small("begun"),
        small("rated", "--learning-rate", RATE),
    ]
    monkeypatch.setattr(queue, "every_row", lambda runs: iter(rows))
    queue.run_all(data, tmp_path / "whole", ["begun", "done"], 0)
    runs = tmp_path / "runs"
    queue.run_all(data, runs, ["done"], 0)
    before = rows[0].model(runs).stat().st_mtime_ns
    # interrupted after its state was saved: the epoch under way is done again
    events = iter_until(rows[2], data, runs, epochs=3)
    assert events == 3 and not rows[2].model(runs).exists()
    with pytest.raises(CheckFailed, match="broken, rated"):
        queue.run_all(data, runs, None, 0)
    assert rows[0].model(runs).stat().st_mtime_ns == before
    expected, found = (load_checkpoint(rows[2].model(folder))[0] for folder in (tmp_path / "whole", runs))
    assert all(np.array_equal(expected[name], found[name]) for name in expected)
    assert [epoch["epoch"] for epoch in queue.epochs_of(rows[2], runs)] == [1, 2, 3, 4, 5, 6]
    accuracy = queue.final_accuracy(rows[2], runs)
    assert (
        accuracy is not None and "6/6" in (line := queue.state_of(rows[2], runs)) and f"accuracy {accuracy:.4f}" in line
    )
    assert queue.final_accuracy(rows[1], runs) is None and queue.state_of(rows[1], runs).endswith("0/6")


def iter_until(row: Row, data: Path, runs: Path, epochs: int) -> int:
    """Runs the command's training in this process and leaves it after so many epochs; returns how many its log has."""

    class Left(Exception):
        pass

    def leave(event: EpochDone) -> str:
        if event.epoch == epochs:
            raise Left
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_command, "describe", leave)
        with pytest.raises(Left):
            main(["train", "classification", *row.arguments(data, runs), "--config", "loaders=0"])
    log = (row.folder(runs) / "log.jsonl").read_text().splitlines()
    return sum(json.loads(line)["event"] == "epoch" for line in log)


def test_an_unknown_row_is_refused_and_one_that_another_command_trains_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="no such row; expected cifar10-resnet18-plain"):
        queue.run_all(tmp_path, tmp_path, ["resnet"], 0)
    program = (
        "import sys; from steadyseg.core.system.files import lock; held = open(sys.argv[1], 'a'); "
        "print(lock(held, for_children=False), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / ".adamw-vit6-0")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        queue.run_all(tmp_path, tmp_path, ["adamw-vit6-0"], 0)
        other.communicate("")
    assert "adamw-vit6-0: another command is at work on it" in capsys.readouterr().out
    with pytest.raises(CheckFailed, match="adamw-vit6-0"):  # not begun: nothing has chosen its learning rate
        queue.run_all(tmp_path, tmp_path, ["adamw-vit6-0"], 0)


def test_a_row_waits_for_the_pilots_that_another_command_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them are under way elsewhere; the rate is known once both have ended."""
    under_way = {"rate-0.002-vit6", "rate-0.002-preresnet18"}
    monkeypatch.setattr(queue, "is_trained_elsewhere", lambda row, runs: row.name in under_way)
    monkeypatch.setattr(queue, "final_accuracy", lambda row, runs: None if row.name in under_way else 0.3)
    monkeypatch.setattr("time.sleep", lambda _: under_way.pop())
    assert queue.wait_for_rate(tmp_path) in RATES
    monkeypatch.setattr(queue, "final_accuracy", lambda row, runs: None)
    assert queue.wait_for_rate(tmp_path) is None


def test_every_set_of_pictures_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished training has figures of both test sets and of its own pictures; one that is missing has no row."""
    row, runs, record = small("mc"), tmp_path / "runs", tmp_path / "record.json"
    config = {"loop": {"seed": 0, "learning_rate": 0.1}, "hold_out": 0.5, "fraction": 1.0, "subset": 0}
    training = {"images": 18, "held_out": 24, "config": config}
    save_classifier(row.model(runs), ClassifierOptions(channels=4, dropout=0.3), size=16, training=training)
    (row.folder(runs) / "log.jsonl").write_text(
        json.dumps({"event": "epoch", "epoch": 1, "seconds": 90.0, "metrics": {"accuracy": 0.5}}) + "\n"
    )
    save_pictures(tmp_path / "cifar10-jpeg", 7)
    save_pictures(tmp_path / "cifar10", 3, splits=("test",))
    monkeypatch.setattr(queue, "every_row", lambda runs: iter([row, small("absent")]))
    monkeypatch.setattr(measure, "PASSES", {"jpeg": 3, "official": 5, "trained": 1})
    measure.measure_all(tmp_path, runs, None, record)
    shown = capsys.readouterr().out
    kept = json.loads(record.read_text())
    assert kept.keys() == {"mc"} and kept["mc"]["rows"]["minutes"] == 1.5
    found = {name: kept["mc"]["rows"][name] for name in ("jpeg", "official", "trained")}
    assert [one["images"] for one in found.values()] == [42, 18, 18]
    assert [[one["n"] for one in each["passes"]] for each in found.values()] == [[1, 2, 3], [1, 2, 3, 4, 5], [1]]
    for one in found.values():
        right = right_of(one)
        assert len(right) == one["images"] and float(right.mean()) == pytest.approx(one["off"]["accuracy"], abs=1e-6)
    monkeypatch.setattr(measure, "measure", None)  # what is there is not measured again
    measure.measure_all(tmp_path, runs, ["mc"], record)
    assert capsys.readouterr().out == shown and "official N 5" in shown
