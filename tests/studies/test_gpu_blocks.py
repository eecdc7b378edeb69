"""The blocks of GPU work, run on the CPU at tiny size: executors, and trainings that stop and resume."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made.trainings import TINY_SEGMENTATION, boxes_folder

from steadyseg.app.cli import read_flags
from steadyseg.app.commands import STEADYSEG, find_command
from steadyseg.studies.gpu.__main__ import main
from steadyseg.studies.gpu.executors import row_names
from steadyseg.studies.gpu.jobs import FORMS, format_jobs, paper_jobs, recipe_jobs
from steadyseg.studies.gpu.trainings import Job, Queue, bring_home, run_jobs


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
    """The first is too short for two processes to start in, on any machine; what a block did is kept.

    The first job begins with the second one's model.
    """
    stills = ("--split", "test", "--protocol", "stills", "--mode", "dnn")
    jobs = [
        Job("one", ("seg", "--data", "{data}", *TINY_SEGMENTATION, "--epochs", "30", "--init", "{two}"), (stills,)),
        Job("two", ("seg", "--data", "{data}", *TINY_SEGMENTATION, "--epochs", "30")),
    ]
    queue = Queue(data, tmp_path / "runs", "cpu", minutes=0.05)
    left = [run_jobs(jobs, queue)]
    while left[-1] and len(left) < 15:
        left.append(run_jobs(jobs, replace(queue, minutes=0.33 * len(left))))  # a slow machine must get on
    assert left[0] and not left[-1] and all(queue.is_done(job) for job in jobs)
    bring_home(jobs, queue, tmp_path, checkpoints=True)
    record = json.loads((tmp_path / "trainings.json").read_text())
    assert record["one"]["evaluations"][0]["frames"] == 10 and record["two"]["epochs"][-1]["epoch"] == 30
    assert {file.name for file in tmp_path.glob("*.safetensors")} == {"one.safetensors"}


@pytest.mark.long
def test_the_rehearsal_measures_the_rows_of_the_list_piece_by_piece(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A piece of no time measures one row; the next piece keeps that row and measures the other rows."""
    flags = ["--models", "street-tiny", "--device", "cpu", "--data", str(data), "--runs", str(tmp_path / "runs")]
    piece = ["executors", *flags, "--out", str(tmp_path), "--frames", "2", "--seconds", "0.01", "--minutes"]
    assert main(["list", *flags]) == 0
    listed = capsys.readouterr().out.split("formats:")[0].splitlines()[1:]
    assert main([*piece, "0"]) == 0
    first = json.loads((tmp_path / "executors.json").read_text())
    assert list(first) == listed[:1]
    assert capsys.readouterr().out == f"not done yet: {', '.join(listed[1:])}; the same command goes on\n"
    assert main([*piece, "60"]) == 0 and capsys.readouterr().out == "done\n"
    record = json.loads((tmp_path / "executors.json").read_text())
    assert set(record) == set(listed) < set(row_names("street-tiny", "cuda")) and first.items() <= record.items()
    rows = {name.removeprefix("street-tiny: "): row["rows"] for name, row in record.items()}
    assert rows["torch fp32"]["labels_equal"] == 1.0 and rows["onnxruntime fp32"]["labels_equal"] > 0.99
    assert all(row["holds"] if "holds" in row else row["frames_per_s"] > 0 for row in rows.values())


def test_the_list_names_every_training_and_its_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    blocks = ["executors:", "formats:", "paper:", "paper-half:", "recipes:"]
    assert [line for line in lines if line.endswith(":")] == blocks
    for job in [*format_jobs(), *paper_jobs(), *paper_jobs(180), *recipe_jobs()]:
        assert lines.count(job.name) == 1
        assert sum(line.startswith(f"{job.name}: evaluate ") for line in lines) == len(job.evaluations)


def test_the_jobs_are_the_published_forms_and_every_flag_is_known(data: Path) -> None:
    jobs = [*paper_jobs(), *paper_jobs(180), *format_jobs(), *recipe_jobs()]
    assert len({job.name for job in jobs}) == len(jobs)
    trained = [parsed("train", *job.flags).config for job in jobs]
    for job in jobs:
        assert set(job.needs()) < {other.name for other in jobs} - {job.name}
    published = trained[: 2 * len(paper_jobs())]
    assert [config.size for config in published] == 8 * [360] + 8 * [180]
    assert {(config.unet.dropout > 0, config.unet.smoothing) for config in published} == set(FORMS.values())
    assert all(config.unet.channels == 16 and config.loop.epochs == 130 for config in published)
    for job, config in zip(jobs, trained, strict=True):
        evaluated = [parsed("evaluate", "model", *flags, "--data", str(data)).method for flags in job.evaluations]
        has_dropout = config.network == "smp" or config.unet.dropout > 0
        assert has_dropout or not any(method.mode in ("bnn", "vq-bnn") for method in evaluated)


def parsed(*words: str) -> Any:
    """The flags of a job as the command line parses them."""
    return read_flags(*find_command(list(words), STEADYSEG))
