"""The study `robustness`: the report it writes, what it refuses, and the real networks."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from made.robustness import stills_folder
from refusals import one_line_error

from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.studies.analysis.__main__ import ANALYSES, main

pytestmark = [
    pytest.mark.slow,  # the room has trained networks
    pytest.mark.skipif(not find_spec("imagecorruptions"), reason="imagecorruptions-imaug is not installed"),
]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    return one_line_error(capsys, "robustness", *arguments, run=main)


def run(out: Path, *arguments: str | Path) -> dict[str, Any]:
    assert main(["robustness", *map(str, arguments), "--output", str(out)]) == 0
    return json.loads((out / "report.json").read_text())


@pytest.mark.long
def test_segmentation_networks_get_a_report_with_every_study(room, tmp_path, capsys):
    settings = "types=fog,contrast severities=1,5 costly_images=1 sample_counts=1,2 stream_frames=2".split()
    flags = ("--config", *settings, "--images", 2, "--ood", room / "stills" / "val")
    out = tmp_path / "deep" / "out"
    record = run(out, room / "still.safetensors", "--data", room / "stills", *flags)
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == str(out / "report.md") and "corrupted" in captured.out
    assert "note: 2 of 4 pictures" in captured.err
    assert list(record["studies"]) == ["corruptions", "stream", "perturbations", "attacks", "bands", "ood"]
    text = (out / "report.md").read_text()
    for title in ("Corruptions", "Stream", "Perturbation", "Attacks", "Bands", "Out-of-distribution pictures"):
        assert f"## {title}" in text
    assert "dnn is calibrated, temperature 1.500" in text and "max-norm 2/255" in text and "nan" not in text
    clean = record["studies"]["corruptions"]["clean"][0]
    assert f"| still dnn | {clean['accuracy']:.3f} | {clean['nll']:.3f} |" in text
    assert f"--ood {room / 'stills' / 'val'} " in record["command"] and "sample_counts=1,2" in record["command"]


def test_an_interrupted_run_leaves_the_studies_that_are_whole(room, tmp_path, monkeypatch):
    def stopped(items: list[Any], title: str) -> list[Any]:
        if title == "stream":
            raise KeyboardInterrupt
        return items

    monkeypatch.setattr("steadyseg.studies.robustness.command.track", stopped)
    flags = "--only corruptions stream --config types=fog severities=2 stream_frames=2 --images 1".split()
    arguments = (room / "still.safetensors", "--data", room / "stills", *flags, "--output", tmp_path / "out")
    assert main(["robustness", *map(str, arguments)]) == 130
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert list(record["studies"]) == ["corruptions"] and record["notes"][0] == "unfinished: without stream"
    text = (tmp_path / "out" / "report.md").read_text()
    assert "* unfinished: without stream" in text and "## Corruptions" in text


def test_a_classifier_gets_one_and_the_command_in_it_makes_it_again(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = "--only corruptions --config types=fog severities=2 --images 3 --calibrated off".split()
    arguments = (room / "drop.safetensors", "--data", room / "pictures", *flags)
    assert main(["robustness", *map(str, arguments)]) == 0
    first = json.loads((tmp_path / "runs" / "robustness" / "drop" / "report.json").read_text())
    words = first["command"].split()[3:]
    assert main([*words, "--output", "again"]) == 0
    again = json.loads((tmp_path / "again" / "report.json").read_text())
    assert again["studies"]["corruptions"]["rows"] == first["studies"]["corruptions"]["rows"]
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["report.json", "report.md"]


@pytest.mark.long
def test_a_pretrained_network_on_two_stills_of_camvid(data_dir: Path, tmp_path: Path) -> None:
    if not (data_dir / "camvid" / "test").is_dir():
        pytest.skip(f"no CamVid in {data_dir}")
    find_checkpoint("road-realtime")
    flags = "--images 2 --only corruptions stream --config types=gaussian_noise,brightness severities=1 stream_frames=3"
    record = run(tmp_path, "road-realtime", "--data", data_dir / "camvid", *flags.split())
    found, stream = record["studies"]["corruptions"], record["studies"]["stream"]
    assert record["pictures"] == 2 and record["split_pictures"] >= 147
    accuracy = {row["type"]: row["accuracy"] for row in found["rows"]}
    assert found["clean"][0]["accuracy"] > 0.75  # of all 147: 0.836
    assert accuracy["gaussian_noise"] < accuracy["brightness"] < found["clean"][0]["accuracy"] + 0.05
    clean = [row for row in stream["rows"] if row["severity"] == 0 and row["model"] == "road-realtime"]
    assert all(row["accuracy"] > 0.85 and row["consistency"] > 0.9 for row in clean) and len(clean) == 4


FLAGS = {
    "--config types=gausian_noise": "did you mean gaussian_noise? There are gaussian_noise, shot_noise",
    "--config severities=6": "--config severities must be of 1, 2, 3, 4, 5, got 6",
    "--config severities=2,2": "--config severities names something twice: 2 2",
    "--images 0": "--images must be 1 or more, got 0",
    "--config stream_frames=1": "--config stream_frames must be 2 or more",
    "--config eps=0": "--config eps must lie in (0, 255], got 0",
    "--config noise=1.5": "--config noise must lie in (0, 1], got 1.5",
    "--only ood": "--only ood: --ood names no video",
    "--only attacks --ood x.mp4": "--ood is for the study ood",
    "--ood nowhere.mp4 --only ood": "no such file or folder: 'nowhere.mp4'",
    "--split train": "train: no such folder",
    "--config device=tpu": "unknown device 'tpu'",
}
REFUSED = {f"still.safetensors --data stills {flags}": words for flags, words in FLAGS.items()} | {
    "--data stills": "say which network",
    "camvid-unet-x --data stills": "unknown model 'camvid-unet-x'",
    "network.onnx --data stills": "give the checkpoint it was exported from",
    "drop.safetensors --data stills": "no class folders",
    "still.safetensors --data pictures": "testannot: no such folder",
    "sure.safetensors --data stills --config sample_counts=5": "no dropout to draw",
    "still.safetensors --data small": "32x32 pixels or more, got 64x24",
    "drop.safetensors --data pictures --calibrated on": "--calibrated on: drop is not calibrated",
}
"""By networks, data and flags of the study: what its one line says."""


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_is_one_line(words: str, room: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, small = tmp_path / "out", tmp_path / "small"
    places = {path.name: path for path in room.iterdir()} | {"small": small}
    if "small" in words:
        stills_folder(small, count=2, size=(24, 64))
    line = refused(capsys, *(places.get(word, word) for word in words.split()), "--output", out)
    assert REFUSED[words] in line and not out.exists()


def test_a_missing_package_is_one_line_with_what_brings_it(room, tmp_path, capsys, monkeypatch):
    package = "imagecorruptions"
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # an import of it fails
    line = refused(capsys, room / "still.safetensors", "--data", room / "stills", "--output", tmp_path / "out")
    assert package in line and "pip install '.[studies]'" in line


def test_a_report_that_exists_is_kept_without_overwrite(room, tmp_path, capsys):
    (tmp_path / "report.json").write_text("precious")
    line = refused(capsys, room / "still.safetensors", "--data", room / "stills", "--output", tmp_path)
    assert "report.json: exists already" in line and "--overwrite" in line
    assert (tmp_path / "report.json").read_text() == "precious"


def test_the_help_lists_what_can_be_analyzed_and_imports_no_torch() -> None:
    code = (
        "import sys; from steadyseg.studies.analysis.__main__ import main\n"
        "for words in ([], ['robustness', '--help'], ['hessian', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'torch', 'matplotlib', 'cv2'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage: python -m steadyseg.studies.analysis robustness" in done.stdout and "--ood" in done.stdout
    assert all(study in done.stdout for study in ANALYSES.kinds)
