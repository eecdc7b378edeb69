"""The command line: instant help, one line and exit code 2 for bad input, and whole jobs on small data."""

import io
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from made.pictures import labelled_folder, picture
from made.waiting import PATIENCE_S, wait_for
from PIL import Image
from refusals import error_after_work

from steadyseg.__main__ import main
from steadyseg.app.commands import TRAININGS, load
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.system import telling
from steadyseg.seg.pretrained import find_checkpoint

INSTANT = 400
"""Modules that `--help` may import: it has 294, and takes 0.2 s of the processor."""


@pytest.mark.parametrize(
    ("words", "shown", "others"),
    [
        ("", "demo video train evaluate export bench models data", "--epochs"),
        ("train seg", "--epochs --classes usage: steadyseg train seg", "--config head"),
        ("train classification", "--epochs resnet18 usage: steadyseg train classification", "--classes"),
    ],
)
def test_help_is_instant_and_imports_no_torch(words: str, shown: str, others: str) -> None:
    code = (
        "import sys; from steadyseg.__main__ import main\n"
        f"try: main({[*words.split(), '--help']})\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'torch', 'cv2', 'av', 'gradio', 'torchvision', 'timm'} & set(sys.modules); assert not heavy, heavy\n"
        f"assert len(sys.modules) < {INSTANT}, len(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in shown.split()) and others not in done.stdout


def test_a_terminal_is_told_what_takes_long_and_a_log_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SILENT_S", 0.0)
    for is_terminal in (False, True):
        shown = io.StringIO()
        monkeypatch.setattr(shown, "isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        monkeypatch.setattr(sys, "stderr", shown)
        with telling.telling("loads ..."):
            assert not is_terminal or wait_for(shown.getvalue)
    assert shown.getvalue() == "loads ...\n"


WORDS = {"": "segmentation", "train": "Train an image classifier"}
WORDS |= {f"{name} --help": f"steadyseg {name}" for name in ("demo", "video", "train", "evaluate", "models", "data")}


@pytest.mark.parametrize("words", WORDS)
def test_every_command_explains_itself(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert WORDS[words] in shown and "(default: True)" not in shown


@pytest.mark.slow
def test_a_video_waits_for_no_library_that_its_network_does_without() -> None:
    """torchvision alone takes 3 s to import on an AVX2 core, as long as torch."""
    code = (
        "import sys, steadyseg.app.video.job\n"
        "heavy = {'torchvision', 'timm', 'segmentation_models_pytorch', 'torch._dynamo'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_preset_can_be_chosen() -> None:
    from typing import get_args, get_type_hints

    for task in TRAININGS.values():
        assert list(get_args(get_type_hints(load(task.flags))["preset"])) == list(load(task.presets))


@pytest.mark.slow
def test_a_pipe_of_another_encoding_gets_help_and_errors() -> None:
    for words, code, said in ((["--help"], 0, b"usage: "), (["video", "\u9053.mp4"], 2, b"steadyseg: no such file")):
        done = subprocess.run(
            [sys.executable, "-m", "steadyseg", *words],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False) and said in done.stdout + done.stderr


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == version("steadyseg")


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_traceback() -> None:
    command = [sys.executable, "-m", "steadyseg.app.cli", "evaluate", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout and run.stderr
        run.stdout.close()
        assert run.stderr.read() == ""
    assert run.returncode == 1


@pytest.mark.slow
def test_a_street_becomes_a_video_with_masks_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import av

    output, masks, report = tmp_path / "out.mp4", tmp_path / "masks", tmp_path / "r.json"
    words = f"video street:7:12 -o {output} --model street-tiny --view side-by-side --masks {masks} --report {report}"
    assert main(words.split()) == 0
    told = capsys.readouterr().err
    assert "frames/s, the source has 25\n" in told, "the measured speed, and no other network than the default one's"
    with av.open(str(output)) as container:
        frames = list(container.decode(video=0))
    assert len(frames) == 12 and frames[0].format.name == "yuv420p"
    record = json.loads(report.read_text())
    assert record["frames"] == 12 and record["dropped"] == 0 and record["labelled_frames"] == 12
    assert record["accuracy"] > 0.5 and 0 < record["nll"] < 3 and 0.5 < record["consistency"] <= 1
    assert set(record["stages"]) == {
        *("decode", "motion", "preprocess", "network", "resize", "smoothing", "render", "encode", "masks")
    }
    assert abs(sum(record["class_shares"].values()) - 1) < 0.01
    assert len(list(masks.glob("*.png"))) == 24


@pytest.mark.slow
def test_a_report_to_stdout_is_lines_of_json_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("video street:7:3 --model street-tiny --report -".split()) == 0
    first, *_, report = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["index"] == 0 and 0 < first["confidence"] <= 1 and len(first["class_shares"]) == 11
    assert report["frames"] == 3 and report["source"] == "street:7" and not Path("-").exists()


@pytest.mark.slow
def test_sigterm_leaves_a_playable_file_and_the_report(tmp_path: Path) -> None:
    import av

    output, report, temporary = tmp_path / "out.mp4", tmp_path / "r.json", tmp_path / "tmp"
    temporary.mkdir()
    source = tmp_path / "pictures"  # of noise, which soon fills the encoder's 256 kB; the last one is never reached
    source.mkdir()
    for number in range(3000):
        if number < 4:
            Image.fromarray(picture(number, 192, 256)).save(source / f"{number:04}.png")
        else:
            os.link(source / f"{number % 4:04}.png", source / f"{number:04}.png")
    words = ["video", str(source), "-o", str(output), "--model", "street-tiny", "--report", str(report)]
    job = subprocess.Popen(
        [sys.executable, "-m", "steadyseg.app.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    try:
        wait_for(lambda: [path for path in tmp_path.iterdir() if path.stat().st_size > 20_000 and path != source])
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=PATIENCE_S)
    finally:
        job.kill()
    assert job.returncode == 130, errors
    assert "Traceback" not in errors
    with av.open(str(output)) as container:
        count = sum(1 for _ in container.decode(video=0))
    assert count == json.loads(report.read_text())["frames"] > 0
    assert sorted(os.listdir(tmp_path)) == ["out.mp4", "pictures", "r.json", "tmp"] and not os.listdir(temporary)


@pytest.mark.long
def test_the_real_clip_keeps_every_frame_and_time(data_dir: Path, tmp_path: Path) -> None:
    import av

    clip, output = data_dir / "video" / "udacity_vehicle_test_video.mp4", tmp_path / "out.mp4"
    report = tmp_path / "r.json"
    flags = ["--view", "side-by-side", "--report", str(report), "--model", "street-tiny"]
    assert main(["video", str(clip), "-o", str(output), *flags]) == 0
    with av.open(str(output)) as written, av.open(str(clip)) as source:
        times = [frame.time for frame in written.decode(video=0)]
        expected = [frame.time for frame in source.decode(video=0)]
    assert len(times) == len(expected) == json.loads(report.read_text())["frames"] == 38
    assert times == pytest.approx([time - expected[0] for time in expected], abs=1e-3)


@pytest.mark.slow
def test_evaluating_twice_with_one_seed_gives_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadyseg.app.evaluation.data.STREET_FRAMES", 4)
    flags, results = ["--protocol", "stream", "--mode", "vq-bnn", "--report"], []
    for name, seed in (("a.json", "3"), ("b.json", "3"), ("c.json", "4")):
        path = tmp_path / name
        assert main(["evaluate", "street-tiny", "--data", "street", *flags, str(path), "--seed", seed]) == 0
        results.append(json.loads(path.read_text()))
    for key in ("nll", "accuracy", "miou", "ece", "consistency"):
        assert round(results[0][key], 4) == round(results[1][key], 4)
    assert len(results[0]["frame_list"]) == results[0]["frames"] == 4 and results[0]["nll"] != results[2]["nll"]


@pytest.mark.slow
def test_evaluate_measures_the_network_on_some_frames(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("steadyseg.app.evaluation.data.STREET_FRAMES", 5)
    flags, found = ["--data", "street", "--protocol", "stream", "--mode", "vq-dnn", "--report"], []
    for every in ("1", "2"):
        path = tmp_path / f"{every}.json"
        assert main(["evaluate", "street-tiny", *flags, str(path), "--every", every]) == 0
        found.append(json.loads(path.read_text()))
    assert [(one["every"], one["network_frames"]) for one in found] == [(1, 5), (2, 3)]
    assert found[0]["nll"] != found[1]["nll"] and abs(found[0]["accuracy"] - found[1]["accuracy"]) < 0.03
    assert capsys.readouterr().out.count("the network ran on 3 of 5 frames") == 1


@pytest.mark.long
def test_the_card_of_the_street_is_reproduced(tmp_path: Path) -> None:
    flags = ["--data", "street", "--protocol", "stream", "--mode", "vq-dnn", "--motion", "off"]
    result = card_figures("street-tiny", "stream-vq-dnn", tmp_path, *flags)
    assert len(result["frame_list"]) == result["frames"] == 100


@pytest.mark.long
def test_the_card_is_reproduced_on_the_stills(data_dir: Path, tmp_path: Path) -> None:
    data = str(data_dir / "camvid")
    result = card_figures("camvid-unet-s", "stills-dnn", tmp_path, "--data", data, "--split", "test")
    assert result["accuracy"] >= 0.84 and result["miou"] >= 0.48
    card = read_meta(find_checkpoint("camvid-unet-s")).metrics["stills-dnn"]
    assert result["frame_list_hash"] == card["frame_list_hash"]


def card_figures(model: str, row: str, folder: Path, *flags: str) -> dict[str, Any]:
    """What `evaluate` reports, which is what the model's card says, to four digits."""
    path, card = folder / "r.json", read_meta(find_checkpoint(model)).metrics[row]
    calibrated = "on" if card["calibrated"] else "off"
    flags = *flags, "--calibrated", calibrated
    assert main(["evaluate", model, *flags, "--report", str(path)]) == 0
    result = json.loads(path.read_text())
    for key in ("nll", "accuracy", "miou", "ece", "brier"):
        assert result[key] == pytest.approx(card[key], abs=2e-5), key
    return result


def test_a_run_folder_that_is_a_file_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, data = tmp_path / "file", labelled_folder(tmp_path / "data", 2, splits=("train",))
    place.write_text("")
    flags = ["--classes", "camvid", "--batch-size", "1", "--run", place]
    line = error_after_work(capsys, "train", "seg", "--data", data, *flags)
    assert "choose another --run" in line


def test_a_model_with_other_classes_sees_the_street_without_its_labels() -> None:
    from steadyseg.app.sources.open_source import open_source
    from steadyseg.core.classes import ClassList

    three = ClassList(("a", "b", "c"), ((1, 1, 1), (2, 2, 2), (3, 3, 3)))
    with open_source("street:1:2", classes=three) as source:
        assert [frame.label for frame in source] == [None, None]
        assert "left away" in source.info.notes[0]


def test_help_names_kinds_of_values_and_headings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["video", "--help"])
    shown = capsys.readouterr().out
    assert "{None}" not in shown and "SOURCE" in shown
    words = " ".join(shown.replace("│", " ").split())
    assert "dnn: single frame. bnn: MC dropout" in words and "smoothed over the recent frames" in words
    first, method, compute = (shown.index(f" {name} ") for name in ("options", "method options", "compute options"))
    assert first < shown.index("--model") < method < shown.index("--mode ") < compute < shown.index("--backend")
