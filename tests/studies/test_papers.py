"""The papers' queue knows its commands, stops and resumes; its page names all rows. Over-confidence by the product."""

import json
import re
import shutil
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from made.methods import TorchSegmenter
from made.trainings import TINY_SEGMENTATION, boxes_folder

from steadyseg.__main__ import STEADYSEG
from steadyseg.app.cli import read_flags
from steadyseg.app.commands import find_command
from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import CheckpointMeta, save_checkpoint
from steadyseg.runtime.torch_backend import torch_backend
from steadyseg.seg.evaluate import seed_frames
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.street.drive import Street
from steadyseg.studies.analysis.__main__ import ANALYSES
from steadyseg.studies.harness.study import PROJECT
from steadyseg.studies.papers import __main__ as queues
from steadyseg.studies.papers.__main__ import Queue, main
from steadyseg.studies.papers.rows import ROWS, Row, evaluate, named
from steadyseg.studies.papers.trainings import FORMS, TRAININGS, Places, Training
from steadyseg.studies.results.overconfidence import STEP, figures_of, measure

PAGE = PROJECT / "docs" / "explanation" / "papers.md"


def parsed(words: list[str]) -> Any:
    """The flags of a command as its program parses them; None of a module without such flags."""
    if words[0] == "steadyseg":
        return read_flags(*find_command(words[1:], STEADYSEG))
    assert words[:2] == ["python", "-m"], words
    if words[2] == "steadyseg.studies.analysis":
        return read_flags(*find_command(words[3:], ANALYSES))
    assert words[3] == "--data" and len(words) == 5
    assert (PROJECT / Path(*words[2].split(".")[1:])).with_suffix(".py").exists()


@pytest.fixture
def at(tmp_path: Path) -> Queue:
    return Queue(Places(tmp_path / "data", tmp_path / "runs"), "cpu")


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.commit])
def test_every_command_of_a_row_is_known(name: str, at: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    row = ROWS[name]
    assert row.commands and (row.prediction or not row.open)
    trained = [parsed(at.training(network)).config for network in row.networks]
    assert {config.loop.epochs > 0 for config in trained} <= {True}
    for number in range(len(row.commands)):
        parsed(at.command(name, row, number))
    assert main([name, "--dry-run", "--device", "cpu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(row.networks) + len(row.commands)


def test_the_trainings_are_the_published_forms(at: Queue) -> None:
    for prefix, size, width, rate in (("replica360", 360, 64, 0.5), ("replica180", 180, 16, 0.2)):
        configs = [parsed(at.training(name)).config for name in named(prefix, 0, 1)]
        assert {(one.size, one.unet.channels, one.loop.epochs) for one in configs} == {(size, width, 130)}
        assert {(one.unet.dropout, one.unet.smoothing) for one in configs} == {(rate * a, b) for a, b in FORMS.values()}
        assert {one.unet.order for one in configs} == {"conv-bn-relu"}
    assert all(parsed(at.training(f"hard-{form}-0")).config.pictures.label_smoothing == 0 for form in FORMS)
    assert set(TRAININGS) == {network for row in ROWS.values() for network in row.networks}


def test_lists_leave_the_ratio_of_the_paper_and_no_picture_of_vals_drive(at: Queue) -> None:
    names = [f"0001TP_{n:06d}" for n in range(0, 80, 10)] + [f"0016E5_{n:05d}" for n in range(0, 40, 10)]
    (at.places.data / "camvid").mkdir(parents=True)
    at.places.runs.mkdir()
    (at.places.data / "camvid" / "train.txt").write_text("".join(f"/a/{name}.png /b/{name}.png\n" for name in names))
    at.places.write_lists()
    few, drive = (set((at.places.runs / f"{name}.txt").read_text().split()) for name in ("few", "val-drive"))
    assert set(names) - few == {"0001TP_000000", "0001TP_000040", "0016E5_00000"}
    assert drive == set(names[8:])


@pytest.mark.long
def test_blocks_of_seconds_end_the_work_together(at: Queue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first is too short for a process to start in, on any machine; what a block did is kept."""
    root = boxes_folder(at.places.data / "camvid", 10 * [range(1, 11)], background=0)
    for part in ("", "annot"):
        shutil.copytree(root / f"train{part}", root / f"test{part}")
    flags = " ".join(("seg --data {camvid}", *TINY_SEGMENTATION, "--epochs 30"))
    names = ("one", "two")
    monkeypatch.setattr(queues, "TRAININGS", dict.fromkeys(names, Training(flags)))
    row = Row(names, tuple(evaluate(name, "--split test --mode dnn", "camvid") for name in names))
    done = [replace(at, minutes=0.01, parallel=2).run("row", row)]
    while not done[-1] and len(done) < 15:
        done.append(replace(at, minutes=0.33 * len(done), parallel=2).run("row", row))  # a slow machine must get on
    assert not done[0] and done[-1]
    at.bring_home("row", row, tmp_path)
    record = json.loads((tmp_path / "row.json").read_text())
    assert [record[name]["epochs"][-1]["epoch"] for name in names] == [30, 30]
    assert [record[name]["evaluations"][0]["frames"] for name in names] == [10, 10]


def test_the_list_says_what_was_not_run_and_what_it_should_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == list(ROWS)
    assert "few: 4 trainings, 1.6 h on two cores (an estimate), on a GPU not measured; not run" in lines
    assert sum(line.startswith("    predicted: ") for line in lines) == 5


def test_a_row_without_code_and_an_unknown_row_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["depth"]) == 2
    assert (
        capsys.readouterr().err
        == "papers: depth needs the code of commit 8701b10: git checkout 8701b10 && make setup\n"
    )
    assert main(["table"]) == 2
    assert capsys.readouterr().err.startswith("papers: no row is named table; expected list or one of table-2, ")


def test_the_page_names_every_row() -> None:
    """The last column of the claims, and the list of what was not run."""
    text = PAGE.read_text()
    claims = [line for line in text.splitlines() if line.startswith("| ") and line.count(" | ") == 4]
    run = {word for line in claims for word in re.findall(r"`([a-z0-9-]+)`", line.rsplit(" | ", 1)[1])}
    left = set(re.findall(r"`([a-z0-9-]+)`", text.partition("## Not run")[2].partition("\n## ")[0]))
    assert run <= set(ROWS) and set(ROWS) - run <= left
    assert {name for name, row in ROWS.items() if row.open} <= left


@pytest.mark.slow
def test_every_method_at_a_temperature_is_the_products(tmp_path: Path) -> None:
    """All temperatures share the passes; blocks together are the whole stream."""
    torch.manual_seed(1)
    options = UNetOptions(channels=4, depth=3, dropout=0.3, dropout_places=("enc2", "dec4"))
    meta = CheckpointMeta("unet", asdict(options), CAMVID, 64, 96, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))
    save_checkpoint(tmp_path / "network.safetensors", UNet(len(CAMVID), options).state_dict(), meta)
    model = read_segmenter(tmp_path / "network.safetensors")
    frames = list(Street(seed=2, height=64, width=96).frames(25))
    rows = figures_of(measure(model, frames, (1.0, 0.5), passes=2))
    methods = {
        "plain": MethodOptions("dnn"),
        "passes": MethodOptions("bnn", 2),
        "VQ-DNN": MethodOptions("vq-dnn", 1, 1.25, False),
        "VQ-BNN": MethodOptions("vq-bnn", 1, 1.25, False),
        "geometric mean": MethodOptions("vq-dnn", 1, 1.25, False, "geometric"),
    }
    for temperature, (name, method) in product((1.0, 0.5), methods.items()):
        resolved = replace(method.resolve(), temperature=temperature)
        segmenter = TorchSegmenter(torch_backend(model, resolved, keep_probs=True))
        metrics = StreamingMetrics(len(CAMVID), CAMVID.void_id)
        for frame in seed_frames(frames):
            probs = torch.from_numpy(segmenter.step(frame).probs[None, :, ::STEP, ::STEP])
            metrics.update(probs, torch.from_numpy(frame.label[None, ::STEP, ::STEP].copy()))
        found, wanted = rows[f"{temperature:g}"][name], metrics.result()
        assert [found[key][0] for key in ("nll", "ece")] == pytest.approx([wanted["nll"], wanted["ece"]], abs=1e-5), (
            name
        )
        assert found["change"][0] == pytest.approx(found["nll"][0] / rows[f"{temperature:g}"]["plain"]["nll"][0] - 1)
    assert rows["0.5"]["plain, fitted"]["nll"] == rows["1"]["plain"]["nll"] != rows["0.5"]["plain"]["nll"]
