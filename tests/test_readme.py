"""Every line of README runs: commands in the order of the page, in a folder with small inputs of the names there."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made.classifier import save_pictures
from made.foreign import MEAN, STD, foreign_onnx
from made.pictures import labels, picture, save_split
from made.processes import free_port
from made.video import write_video
from made.waiting import PATIENCE_S
from PIL import Image

from steadyseg.__main__ import STEADYSEG
from steadyseg.app.cli import main, read_flags
from steadyseg.app.commands import find_command
from steadyseg.core.classes import CAMVID
from steadyseg.export.file.sessions import cpu_session
from steadyseg.seg.data.formats.source import CLASSES_FILE

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text()
NOT_RUN = r"make demo|uv tool install |docker |.*\b(rtsp|rtmp)://|steadyseg video \d"
"""Installs, the page of `make demo`, containers, streams and cameras."""
SMALL = {
    "seg": "--size 64 --epochs 2 --config corrupt=0 loaders=0 threads=1",
    "classification": "--channels 4 --batch-size 6 --epochs 1 --config loaders=0 threads=1",
}
"""What makes README's trainings some of seconds; all else is as README has it."""
SIZE = 48, 64


def runnable(text: str) -> list[str]:
    """The commands of a text without their comments."""
    lines = [re.sub(r"\s+#.*", "", line) for line in text.splitlines()]
    return [line for line in lines if line and not re.match(NOT_RUN, line)]


BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
START = runnable("".join(text for language, text in BLOCKS if not language))
TABLE = runnable("\n".join(re.findall(r"^\|[^|]*\| `([^`]*)`", README, re.MULTILINE)))
PYTHON = [text for language, text in BLOCKS if language == "python"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, on a machine that reaches nothing but itself."""
    reach = socket.getaddrinfo

    def offline(host: object, *arguments: object, **named: object) -> object:
        if host not in (None, "127.0.0.1", "localhost", "::1"):
            raise socket.gaierror(socket.EAI_NONAME, f"{host}: this test is offline")
        return reach(host, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", offline)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_inputs(folder: Path) -> None:
    """All that README takes for granted. The labels are CamVid's classes as the network mine.onnx sees them, but for
    every fourth row."""
    write_video(folder / "drive.mp4", (picture(seed, *SIZE) for seed in range(3)))
    network = cpu_session(foreign_onnx(folder / "mine.onnx", shape=(1, 3, *SIZE), classes=len(CAMVID)).read_bytes())

    def labelled(name: str, seed: int) -> tuple[str, np.ndarray, np.ndarray]:
        image, label = picture(seed, *SIZE), labels(seed, *SIZE)
        normalised = ((image / 255 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)[None]
        seen = network.run(None, {"picture": normalised})[0][0].argmax(0)
        label[np.arange(len(label)) % 4 > 0] = seen[np.arange(len(label)) % 4 > 0]
        return name, image, label

    record = {"names": CAMVID.names, "colors": CAMVID.colors, "void": CAMVID.void}
    (folder / "names.json").write_text(json.dumps(CAMVID.names))
    for data in (folder / "own", folder / "CamVid"):
        for split, count in (("train", 4), ("val", 2), ("test", 2)):
            save_split(data, split, (labelled(f"{split}{number}", number) for number in range(count)))
        (data / CLASSES_FILE).write_text(json.dumps(record))
    save_pictures(folder / "cifar10")
    (folder / "data.yaml").write_text("train: images\nval: images\nnames: [road, car]\n")
    for name in ("images", "labels"):
        (folder / name).mkdir()
    Image.fromarray(picture(0, *SIZE)).save(folder / "images" / "a.png")
    (folder / "labels" / "a.txt").write_text("1 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75\n")


def run(command: str) -> None:
    """Runs a command to its end; what it writes is not there before."""
    words = shlex.split(command)[1:]
    if "-o" in words:
        written = Path(words[words.index("-o") + 1])
        shutil.rmtree(written, ignore_errors=True)
        written.unlink(missing_ok=True)
    assert main([*words, *(shlex.split(SMALL[words[1]]) if words[0] == "train" else ())]) == 0, command


def open_page(command: str) -> None:
    """Runs a command that serves a page until the page has come, and ends it."""
    address = f"http://127.0.0.1:{(port := free_port())}/"
    words = [sys.executable, "-m", *shlex.split(command), "--port", str(port), "--no-open-browser"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None and address in server.stdout.readline()
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address) as page:
                assert "SteadySeg" in page.read().decode()
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=PATIENCE_S) == 0
        finally:
            server.kill()


def test_the_program_takes_every_command_in_the_text() -> None:
    """Those of the code blocks: tests/app/test_settings.py."""
    found = re.findall(r"`steadyseg ([^`\n]+)`", README)
    assert len(found) >= len(TABLE)
    for program, command, words in (find_command(shlex.split(line), STEADYSEG) for line in found):
        assert read_flags(program, command, words) if command.flags else not words, program


def test_the_front_page_is_short() -> None:
    assert len(README.encode()) < 10_000
    assert len([line for line in PYTHON[0].splitlines() if line]) <= 6


@pytest.mark.long
def test_the_commands_to_start_with_run_in_their_order(folder: Path) -> None:
    make_inputs(folder)
    for command in START:
        (open_page if command.startswith("steadyseg demo") else run)(command)
    assert (folder / "out.mp4").stat().st_size and (folder / "mine.onnx").stat().st_size


@pytest.mark.slow
def test_the_commands_of_the_table_run_in_their_order(folder: Path) -> None:
    make_inputs(folder)
    for command in TABLE:
        run(command)


@pytest.mark.slow
@pytest.mark.parametrize("snippet", PYTHON, ids=["included", "own"])
def test_a_snippet_runs_offline_as_its_comment_says(snippet, folder, capsys):
    if offline := re.search(r"[Oo]ffline: ((?:\w+=\w+(?:, )?)+)", snippet):
        snippet = snippet.replace('weights="DEFAULT"', offline[1].removesuffix(", "))
    names: dict[str, Any] = {}
    exec(compile(snippet, "README.md", "exec"), names)
    assert names["maps"].label.shape == names["frame"].image.shape[:2]
    said, frames = capsys.readouterr().out.splitlines(), re.search(r"street:\d+:(\d+)", snippet)
    assert len(said) == (int(frames[1]) if frames else 0)
    assert all(re.fullmatch(r"\d\.\d\d s: .*% .*unsure", line) for line in said)
