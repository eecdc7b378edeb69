"""`steadyseg cameras` by real processes and streams: metrics, alarms, a killed worker, and no secret anywhere."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from made.processes import workers_of
from made.video import write_video
from made.waiting import PATIENCE_S, wait_for
from refusals import one_line_error, refusal
from rich.console import Console

from steadyseg.app.scale.cameras.alarms import Alarms, AlarmWriter
from steadyseg.app.scale.cameras.camera_file import Camera, read_cameras
from steadyseg.app.scale.cameras.command import assign_cameras, table_of
from steadyseg.app.scale.cameras.metrics import prometheus_text
from steadyseg.app.scale.cameras.state import CameraFigures, CameraHistory, CameraState

PROJECT = Path(__file__).parents[2]


def test_a_file_says_what_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "cameras.toml"
    path.write_text(
        '[options]\nmodel = "street-tiny"\nmotion = false\n[defaults]\nsample_fps = 2\n'
        '[[camera]]\nname = "gate"\nsource = "rtsp://me:secret@10.0.0.5/live?token=abc"\n'
        '[[camera]]\nname = "yard"\nsource = "yard.mp4"\nsample_fps = 0.5\nmax_age_s = 7\n'
    )
    watched = read_cameras(path)
    gate, yard = watched.cameras
    assert (watched.options.model, watched.options.method.motion) == ("street-tiny", False)
    assert (gate.sample_fps, yard.sample_fps, gate.max_age_s, yard.max_age_s) == (2, 0.5, 2, 7)
    assert gate.label == "rtsp://***@10.0.0.5/live?***" and gate.load == 2


CAMERA = '[[camera]]\nname = "a"\nsource = "rtsp://me:secret@host/"\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("camera = 3", "names no camera"),
        ("", "names no camera"),
        (CAMERA + 'colour = "red"', "unknown key"),
        ("speed = 1\n" + CAMERA, "unknown key 'speed'"),
        ("[defaults]\nfps = 0\n" + CAMERA, "fps must be a number"),
        ('[options]\nview = "overlay"\n' + CAMERA, "unknown key 'view'"),
        ('[options]\nmode = "fast"\n' + CAMERA, "fast"),
        (CAMERA + CAMERA, "two cameras are called 'a'"),
        ('[[camera]]\nname = "a b"\nsource = "0"', "its name must be"),
        ('[[camera]]\nname = "a"', "has no source"),
        (CAMERA + "sample_fps = true", "must be a number"),
        ('[[camera]]\nname = "rtsp://me:secret@host"\nsource = "rtsp://me:secret@host', "no TOML"),
    ],
)
def test_files_of_no_cameras_are_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "c.toml").write_text(content)
    line = refusal(read_cameras, tmp_path / "c.toml")
    assert said in line and "secret" not in line


def test_flags_are_refused_before_any_process_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.toml").write_text(CAMERA)
    (tmp_path / "old.json").write_text("{}")
    for flags, said in (
        (["--workers", "0"], "--workers"),
        (["--alarms", tmp_path], "--alarms"),
        (["--report", "r.txt"], "a report is a .json file"),
        (["--report", tmp_path / "old.json"], "exists already"),
    ):
        assert said in one_line_error(capsys, "cameras", tmp_path / "c.toml", *flags)
    assert "gone.toml" in one_line_error(capsys, "cameras", tmp_path / "gone.toml")


def test_busy_cameras_are_divided_evenly_and_no_worker_is_idle() -> None:
    cameras = [Camera(str(i), "0", fps=fps) for i, fps in enumerate((30, 1, 1, 15, 15, 1))]
    placed = assign_cameras(cameras, 2)
    assert sorted(sum(camera.load for camera in one) for one in placed) == [31, 32]
    assert [len(one) for one in assign_cameras(cameras[:2], 8)] == [1, 1]


def test_counts_go_on_over_a_dead_worker_and_the_gap_is_counted() -> None:
    history = CameraHistory("a")
    assert history.figures(now_s=99.0).state.silent_s == 0  # its worker has not been opened yet
    history.update(CameraState("a", frames=10, dropped=2, silent_s=0.5), now_s=100.0)
    history.lost(now_s=101.0, why="ended by SIGKILL")  # the last frame was at 99.5
    during = history.figures(now_s=105.0)
    assert (during.state.frames, during.restarts, during.gap_s) == (10, 1, 5.5) and during.state.trouble
    history.update(CameraState("a", frames=0, silent_s=1.0), now_s=108.0)  # the new one has none yet
    assert history.figures(now_s=108.0).state.silent_s == 8.5
    history.update(CameraState("a", frames=3, dropped=1, silent_s=0.0), now_s=110.0)
    after = history.figures(now_s=110.0)
    assert (after.state.frames, after.state.dropped, after.restarts, after.gap_s) == (13, 3, 1, 10.5)


def test_alarms_begin_and_end_once_each_without_secrets(tmp_path: Path) -> None:
    camera = Camera("a", "rtsp://me:secret@host/x", silent_s=5, max_age_s=1)
    path = tmp_path / "alarms.jsonl"
    with closing(AlarmWriter(path, print)) as writer:
        alarms = Alarms(writer)
        for silent_s, age_s, ood_s, low_s in (
            (1, 0.1, 0, 0),
            (6, 0.1, 0, 0),
            (7, 0.1, 0, 0),
            (0, 3.0, 0, 0),
            (0, 0.1, 2.1, 0),
            (0, 0.1, 0, 3.2),
            (0, 0.1, 0, 0),
        ):
            state = CameraState("a", silent_s=silent_s, age_s=age_s, ood_s=ood_s, low_s=low_s)
            alarms.look(camera, CameraFigures(state), at_s=1.0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["alarm"], line["on"]) for line in lines] == [
        ("silent", True),
        ("silent", False),
        ("too_old", True),
        ("too_old", False),
        ("ood", True),
        ("ood", False),
        ("low_accuracy", True),
        ("low_accuracy", False),
    ]
    assert "secret" not in path.read_text() and lines[0]["source"] == "rtsp://***@host/x"


def test_the_text_is_what_prometheus_reads() -> None:
    states = (
        CameraState("a", frames=12345678, age_s=None),
        CameraState("b", age_s=0.1, silent_s=4.0),
        CameraState("c", age_s=0.1, silent_s=6.0),  # connects again, and has no trouble yet
        CameraState("d", age_s=0.1, trouble="gone"),
    )
    cameras = [Camera(state.name, "0", silent_s=5.0) for state in states]
    text = prometheus_text(cameras, map(CameraFigures, states))
    assert re.findall(r'camera_up\{camera="(.)"} 1', text) == ["b"]
    assert 'steadyseg_camera_frames_total{camera="a"} 12345678\n' in text
    assert 'age_seconds{camera="a"}' not in text  # not known yet
    line = r'# (HELP|TYPE) \w+ .+|\w+\{camera="[\w.-]+"\} -?[0-9.e+]+'
    assert all(re.fullmatch(line, one) for one in text.splitlines())


def test_the_table_has_whole_names_and_reasons_at_80_columns() -> None:
    camera = Camera("yard-behind-the-old-gate", "rtsp://me:secret@10.0.0.5/live")
    console = Console(width=80, file=io.StringIO(), markup=False)
    console.print(
        table_of((camera,), [CameraFigures(CameraState(camera.name, sent_fps=500.4, trouble="gives no picture [/b]"))])
    )
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert camera.name in shown and "rtsp://***@10.0.0.5/live" in shown and "gives no picture [/b]" in shown
    assert "sends 500 frames/s" in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown


@contextmanager
def watching(folder: Path, *flags: object) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command as a process, and the address of its metrics."""
    command = [sys.executable, "-m", "steadyseg.app.cli", "cameras", folder / "cameras.toml", "--port", 0, *flags]
    process = subprocess.Popen(
        [str(word) for word in command], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = []
        assert process.stderr is not None
        while not said or "figures: " not in said[-1]:
            said.append(process.stderr.readline())
            assert said[-1], said
        yield process, said[-1].split()[-1]
    finally:
        process.kill()
        process.communicate()


def figures(address: str) -> dict[str, float]:
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def until(address: str, name: str, least: float) -> dict[str, float]:
    def reached() -> dict[str, float] | None:
        return found if (found := figures(address)).get(name, 0) >= least else None

    return wait_for(reached) or {}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_killed_workers_cameras_go_on_and_what_is_gone_or_novel_is_an_alarm(
    model: str, tmp_path: Path, engine: str
) -> None:
    """Whatever the network of these tests sees is novel to it."""
    noise = np.random.default_rng(0).integers(0, 255, (20, 96, 128, 3), np.uint8)
    write_video(tmp_path / "yard.mp4", list(noise) * 30, fps=10)  # a minute: an alarm takes seconds
    (tmp_path / "cameras.toml").write_text(
        f'[options]\nmodel = "{model}"\nexecutor = "torch"\n[defaults]\nsilent_s = 2\n'
        f'[[camera]]\nname = "yard"\nsource = "{tmp_path}/yard.mp4"\n'
        '[[camera]]\nname = "gone"\nsource = "rtsp://me:secret@127.0.0.1:1/x"\n'
    )
    alarms, report = tmp_path / "alarms.jsonl", tmp_path / "report.json"
    flags = [*(("--ray", "local") if engine == "ray" else ()), "--workers", 1, "--alarms", alarms, "--report", report]
    with watching(tmp_path, *flags) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        before = until(address, 'steadyseg_camera_frames_total{camera="yard"}', 15)
        assert 0 < before['steadyseg_camera_familiarity{camera="yard"}'] <= 0.05
        assert before['steadyseg_camera_up{camera="yard"}'] == 1 and before['steadyseg_camera_up{camera="gone"}'] == 0
        (worker,) = workers_of(process.pid)
        os.kill(worker, signal.SIGKILL)
        frames = before['steadyseg_camera_frames_total{camera="yard"}']
        until(address, 'steadyseg_camera_restarts_total{camera="yard"}', 1)
        after = until(address, 'steadyseg_camera_frames_total{camera="yard"}', frames + 20)
        assert after['steadyseg_camera_gap_seconds_total{camera="yard"}'] > 0.5
        told = until(address, 'steadyseg_camera_ood_seconds{camera="yard"}', 0.1)
        # The metrics are current; alarms are checked once a second.
        until(
            address,
            'steadyseg_camera_frames_total{camera="yard"}',
            told['steadyseg_camera_frames_total{camera="yard"}'] + 20,
        )
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "Traceback" not in errors and "leaked" not in errors, errors
    lines = [json.loads(line) for line in alarms.read_text().splitlines()]
    began = {(line["camera"], line["alarm"]) for line in lines if line["on"]}
    assert {("gone", "silent"), ("yard", "ood")} <= began and ("gone", "ood") not in began
    shown = said + errors + alarms.read_text() + report.read_text()
    assert "secret" not in shown and "rtsp://***@127.0.0.1:1/x" in shown
    found = {one["state"]["name"]: one for one in json.loads(report.read_text())["cameras"]}
    assert found["yard"]["restarts"] == 1 and found["gone"]["state"]["frames"] == 0
