"""GPU work, run on the CPU at tiny size: the check row by row, and trainings that stop and resume."""

import json
import os
import shutil
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made.trainings import TINY_SEGMENTATION, boxes_folder

from steadyseg.app.cli import read_flags
from steadyseg.app.commands import STEADYSEG, find_command
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.export.file.sessions import cpu_session
from steadyseg.street.drive import Street
from steadyseg.studies.gpu import files
from steadyseg.studies.gpu.__main__ import main
from steadyseg.studies.gpu.check import rows_of, run_check
from steadyseg.studies.gpu.files import Place
from steadyseg.studies.gpu.trainings import FORMS, Job, Queue, bring_home, paper_jobs, run_jobs
from steadyseg.studies.gpu.wheels import BEGIN, thin


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train and val alike: ten pictures of boxes."""
    root = boxes_folder(tmp_path_factory.mktemp("camvid"), 10 * [range(1, 11)], background=0)
    for split in ("val", "test"):
        shutil.copytree(root / "train", root / split)
        shutil.copytree(root / "trainannot", root / f"{split}annot")
    return root


@pytest.mark.long
def test_blocks_of_seconds_end_the_work_together(data: Path, tmp_path: Path) -> None:
    """The first is too short for two processes to start in, on any machine; what a block did is kept."""
    stills = ("--split", "test", "--protocol", "stills", "--mode", "dnn")
    jobs = [Job(name, ("seg", *TINY_SEGMENTATION, "--epochs", "30"), (stills,)) for name in ("one", "two")]
    queue = Queue(data, tmp_path / "runs", "cpu", minutes=0.05)
    left = [run_jobs(jobs, queue)]
    while left[-1] and len(left) < 15:
        left.append(run_jobs(jobs, replace(queue, minutes=0.33 * len(left))))  # a slow machine must get on
    assert left[0] and not left[-1]
    bring_home(jobs, queue, tmp_path)
    record = json.loads((tmp_path / "trainings.json").read_text())
    assert record["one"]["evaluations"][0]["frames"] == 10 and record["two"]["epochs"][-1]["epoch"] == 30


def made_rows(place: Place) -> dict[str, Any]:
    """Rows of every end, until there is a file `mended`."""
    ends = {
        "good": lambda: {"value": 1.5},
        "wrong": lambda: {"value": float((place.runs / "mended").read_text())},
        "refused": lambda: {"value": Street(seed=-1).seed},
        "killed": lambda: os.kill(os.getpid(), 9),
        "hangs": lambda: time.sleep(600),
        "last": lambda: {"value": 2},
    }
    return dict.fromkeys(ends, lambda: {"value": 3}) if (place.runs / "mended").exists() else ends


@pytest.mark.slow
def test_no_end_of_a_row_stops_the_rows_after_it(tmp_path: Path) -> None:
    """The same command measures again what failed, and nothing else."""
    record, place = tmp_path / "check.json", Place("cpu", tmp_path, limit_s=5)
    assert run_check(place, record, 60, made_rows) == ([], ["wrong", "refused", "killed", "hangs"])
    first = {name: row["rows"] for name, row in json.loads(record.read_text()).items()}
    assert first["good"] == {"value": 1.5} and first["last"] == {"value": 2}
    assert first["wrong"]["failed"].startswith("FileNotFoundError: ")
    assert first["refused"]["failed"] == "a street's seed must be 0 or more, got -1"
    assert first["killed"]["failed"] == "its process ended with code -9"
    assert first["hangs"]["failed"] == "took more than 5 s"
    (tmp_path / "mended").touch()
    assert run_check(place, record, 60, made_rows) == ([], [])
    second = {name: row["rows"]["value"] for name, row in json.loads(record.read_text()).items()}
    assert second == {"good": 1.5, "wrong": 3, "refused": 3, "killed": 3, "hangs": 3, "last": 2}


@pytest.mark.long
def test_the_rehearsal_measures_the_rows_of_the_list(data, tmp_path, capfd, monkeypatch):
    """A file that no GPU computes is a failure, be it that the provider is absent or that it computes nothing."""
    flags = ["--device", "cpu", "--runs", str(tmp_path / "runs"), "--model", "street-tiny", "--size", "64"]
    assert main(["list", *flags]) == 0
    listed = capfd.readouterr().out.split("paper:")[0].splitlines()[1:]
    check = ["check", *flags, "-o", str(tmp_path), "--seconds", "0.01", "--limit", "3000", "--minutes"]
    assert main([*check, "0"]) == 0
    assert capfd.readouterr().out == f"not done yet: {', '.join(listed)}; the same command goes on\n"
    assert main([*check, "600"]) == 0 and capfd.readouterr().out.splitlines()[-1] == "done"
    record = json.loads((tmp_path / "check.json").read_text())
    assert set(record) == set(listed) < set(rows_of(Place("cuda", tmp_path)))
    rows = {name: row["rows"] for name, row in record.items()}
    assert rows["provider"]["elsewhere"] == {} and rows["frames/s, torch fp32"]["labels_equal"] > 0.99
    assert rows["training step, fp32"]["first_loss"] == pytest.approx(rows["training step, fp32"]["loss_on_cpu"])

    place = Place("cuda", tmp_path / "runs", "street-tiny", 0.01)
    for name in ("provider", "parity, plain file", "parity, stateful file", "frames/s, stateful file of fp16"):
        with pytest.raises(InputError, match="cannot use CUDAExecutionProvider"):
            rows_of(place)[name]()
    monkeypatch.setattr(files, "open_session", lambda data, *_: (cpu_session(data), "cuda"))
    with pytest.raises(CheckFailed, match="CUDAExecutionProvider was asked for, and others compute"):
        rows_of(place)["provider"]()


def test_a_library_keeps_the_code_of_one_card() -> None:
    """Fat binaries stay where they are; one that lacks the card's code stays whole."""

    def fat(*entries: tuple[int, bytes]) -> bytes:
        packed = b"".join(struct.pack("<HHIQ12xI", 2, 257, 32, len(code), card) + code for card, code in entries)
        return BEGIN + struct.pack("<Q", len(packed)) + packed

    kept, other = fat((90, b"ninety")), fat((120, b"other"))
    whole = b"text" + fat((75, b"old"), (90, b"ninety"), (120, b"new")) + b"data" + other + b"end"
    thinned = thin(whole, 90)
    assert len(thinned) == len(whole) and thinned.endswith(b"data" + other + b"end")
    assert thinned.removeprefix(b"text").startswith(kept) and not set(thinned[4 + len(kept) : whole.index(b"data")]) - {
        0
    }


def test_the_list_names_every_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["check:", "paper:", "paper-half:"]
    assert all(lines.count(job.name) == 1 for job in [*paper_jobs(), *paper_jobs(180, 16, 0.2)])


def test_the_jobs_are_the_published_forms_and_every_flag_is_known(data: Path) -> None:
    published = [parsed("train", *job.flags).config for job in paper_jobs()]
    assert {(config.unet.channels, config.size, config.loop.epochs) for config in published} == {(64, 360, 130)}
    assert {config.unet.dropout for config in published} == {0.0, 0.5}
    jobs = paper_jobs(180, 16, 0.2)
    trained = [parsed("train", *job.flags).config for job in jobs]
    assert {(config.unet.channels, config.size, config.loop.epochs) for config in trained} == {(16, 180, 130)}
    assert len({job.name for job in [*jobs, *paper_jobs()]}) == 16
    assert {(config.unet.dropout > 0, config.unet.smoothing) for config in trained} == set(FORMS.values())
    for job, config in zip(jobs, trained, strict=True):
        evaluated = [parsed("evaluate", "model", *flags, "--data", str(data)).method for flags in job.evaluations]
        assert config.unet.dropout > 0 or not any(method.mode in ("bnn", "vq-bnn") for method in evaluated)


def parsed(*words: str) -> Any:
    """The flags of a job as the command line parses them."""
    return read_flags(*find_command(list(words), STEADYSEG))
