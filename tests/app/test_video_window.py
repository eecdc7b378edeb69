"""`video --show`: its keys on a real segmenter, a real window with an X server, and one line without an X server."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S, wait_for

from steadyseg.app.cli import main
from steadyseg.app.video.caches import Recent
from steadyseg.app.video.flags import VideoJob, VideoOptions
from steadyseg.app.video.job import open_for
from steadyseg.app.video.window import Player
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.export.run.networks import FrameNetwork
from steadyseg.seg.street.drive import Street

PROJECT = Path(__file__).parents[2]
JOB = VideoJob("street", options=VideoOptions(model="street-tiny"))


def test_without_a_display_it_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["video", "street:7:2", "--model", "street-tiny", "--show"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "there is no display that answers" in line and "-o" in line


@pytest.mark.slow
def test_keys_change_view_and_method_and_pass_over_what_the_model_lacks() -> None:
    networks = Recent[FrameNetwork]()

    def reopen(method: MethodOptions) -> Segmenter:
        return open_for(replace(JOB, options=replace(JOB.options, method=method)), networks.take)

    segmenter = reopen(MethodOptions())
    player = Player(JOB, segmenter, reopen)
    frames = list(Street(seed=7, height=120, width=160).frames(4))
    shown = [player.draw(frames[0], segmenter.step(frames[0])).shape]
    seen = [player.view]
    for _ in range(5):  # street-tiny has neither novelty nor thresholds of sets
        player.press("v", 0)
        seen.append(player.view)
    assert seen == ["overlay", "side-by-side", "uncertainty", "confidence", "disagreement", "overlay"]
    player.press("v", 0)
    shown.append(player.draw(frames[1], segmenter.step(frames[1])).shape)
    assert shown[1][1] == 2 * shown[0][1] == 320
    assert str(segmenter.method) == "vq-dnn, tau 8, motion"
    player.press("m", 1)
    assert str(segmenter.method) == "bnn x5" and player.notes == ["bnn x5 from frame 2 on, chosen in the window"]
    changed, fresh = segmenter.step(frames[2]), reopen(MethodOptions("dnn"))
    for _ in range(2):
        player.press("m", 2)
    player.press("m", 2)
    assert str(segmenter.method) == "vq-dnn, tau 8, motion" and changed.label.shape == (120, 160)
    while segmenter.method.mode != "dnn":
        player.press("m", 2)
    assert (segmenter.step(frames[3]).confidence == fresh.step(frames[3]).confidence).all(), "it starts anew"


@pytest.fixture
def display() -> Iterator[str]:
    """The name of an X server without a screen."""
    if not (shutil.which("Xvfb") and shutil.which("xdotool")):
        pytest.skip("Xvfb and xdotool are not installed: apt-get install xvfb xdotool")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x900x24"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as told:
        yield f":{told.readline().strip()}"
    server.terminate()
    server.wait()


@pytest.mark.slow
def test_a_real_window_shows_the_frames_and_hears_the_keys(display: str, tmp_path: Path) -> None:
    environment = os.environ | {"DISPLAY": display}
    command = [sys.executable, "-m", "steadyseg.app.cli", "video", "street:7:2000", "--model", "street-tiny", "--show"]
    job = subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def title_with(words: str) -> None:
        wait_for(lambda: words in titles() or job.poll() is not None)
        assert job.poll() is None, words

    def xdotool(*words: str) -> str:
        return subprocess.run(["xdotool", *words], env=environment, capture_output=True, text=True, check=False).stdout

    def titles() -> str:
        return xdotool("search", "--name", "SteadySeg", "getwindowname", "%@")

    def press(key: str) -> None:
        xdotool("search", "--name", "SteadySeg", "windowfocus", "key", key)

    title_with("vq-dnn, tau 8, motion, overlay")
    press("v")
    title_with("side-by-side")
    press("m")
    title_with("bnn x5, side-by-side")
    press("q")
    out, err = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0 and "chosen in the window" in out, err
