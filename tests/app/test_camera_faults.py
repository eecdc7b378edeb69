"""Faults of one camera, of a disk or of a reader of metrics, which must hurt nothing else."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from made.waiting import PATIENCE_S, wait_for
from PIL import Image

from steadyseg.app.scale.cameras.alarms import Alarms, AlarmWriter
from steadyseg.app.scale.cameras.camera_file import Camera
from steadyseg.app.scale.cameras.metrics import MetricsServer
from steadyseg.app.scale.cameras.state import CameraFigures, CameraState
from steadyseg.app.scale.cameras.stream import Arrived, CameraStream
from steadyseg.app.scale.cameras.worker import CameraWorker, WatchedCamera
from steadyseg.app.video.caches import BackgroundNetworks, StillCompiling
from steadyseg.app.video.flags import VideoOptions
from steadyseg.core.classes import CAMVID
from steadyseg.core.frame import Frame, Maps


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place]).returncode:
        pytest.skip("no small file system can be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_alarms_wait_for_a_full_disk_and_then_come_whole(small_disk: Path) -> None:
    camera, told = Camera("a", "0"), []
    with closing(AlarmWriter(small_disk / "alarms.jsonl", told.append)) as writer:
        alarms = Alarms(writer)
        (small_disk / "other").write_bytes(bytes(12_200))  # room is left for part of a page
        for second in range(60):
            silent_s = 99.0 * (second % 2)
            alarms.look(camera, CameraFigures(CameraState("a", silent_s=silent_s)), at_s=float(second))
        assert len(told) == 1 and "No space left on device" in told[0]
        (small_disk / "other").unlink()
        alarms.look(camera, CameraFigures(CameraState("a", silent_s=0.0)), at_s=60.0)
    lines = [json.loads(line) for line in (small_disk / "alarms.jsonl").read_text().splitlines()]
    assert [line["time"] for line in lines] == [float(second) for second in range(1, 61)]


def test_a_line_that_a_kill_cut_off_spoils_no_other(tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    log.write_text('{"time": 1.0}\n{"tim')
    for _ in range(2):  # and a whole line gets no empty one
        with closing(AlarmWriter(log, print)) as writer:
            writer.write('{"time": 2.0}\n')
    assert log.read_text().splitlines() == ['{"time": 1.0}', '{"tim', '{"time": 2.0}', '{"time": 2.0}']


def test_a_reader_of_alarms_that_stops_reading_does_not_stop_the_service() -> None:
    reading, writing = os.pipe()
    told: list[str] = []
    with (
        os.fdopen(reading),
        os.fdopen(writing, "w") as out,
        closing(AlarmWriter(None, told.append, out.fileno())) as writer,
    ):
        for _ in range(20):
            writer.write("x" * 9_999 + "\n")  # three times what a pipe holds
        assert len(told) == 1 and "nobody reads them" in told[0]
    assert "15 lines were never written" in told[1]


@pytest.mark.slow
def test_a_photograph_as_a_camera_is_opened_once_a_second(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(tmp_path / "photo.png")
    stream = CameraStream(Camera("a", str(tmp_path / "photo.png")), CAMVID, threading.Condition())
    began_s = time.monotonic()
    stream.start()
    wait_for(lambda: stream.counts["arrived"] == stream.counts["opened"] >= 3)
    opened = stream.counts["opened"]
    assert opened <= 1 + time.monotonic() - began_s


def test_sampled_frames_are_evenly_spaced_and_missed_ones_are_not_caught_up() -> None:
    stream = CameraStream(Camera("a", "0", sample_fps=2), CAMVID, threading.Condition())
    assert [stream._next_due(10.0, now_s) for now_s in (10.1, 10.4, 10.6, 13.0)] == [10.5, 10.5, 11.1, 13.5]


def test_a_break_at_a_frame_that_is_not_sampled_comes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index, width in enumerate((64, 96, 96, 96)):
        Image.fromarray(np.zeros((48, width, 3), np.uint8)).save(tmp_path / f"{index}.png")
    stream, offered = CameraStream(Camera("a", str(tmp_path), sample_fps=10), CAMVID, threading.Condition()), []
    monkeypatch.setattr(stream, "_offer", offered.append)
    stream._read()
    assert [arrived.frame.discontinuity for arrived in offered[:2]] == [True, True]


def test_networks_of_few_sizes_are_kept_and_compiling_one_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadyseg.app.video.caches.MAX_KEPT", 2)
    networks, gate = BackgroundNetworks(), threading.Event()

    def network(size: int) -> str:
        def make() -> str:
            gate.wait(PATIENCE_S)
            return str(size)

        return networks.take(size, make)

    def has(size: int) -> bool:
        with contextlib.suppress(StillCompiling):
            return network(size) == str(size)
        return False

    gate.set()
    for size in range(3):
        with pytest.raises(StillCompiling):
            network(size)
        wait_for(lambda size=size: has(size))
    gate.clear()
    assert network(2) == "2"
    with pytest.raises(StillCompiling):  # the least recently used one was dropped
        network(0)
    assert network(1) == "1"  # at once, while the other one is made
    gate.set()


class Failing:
    """A segmenter that meets an error that nobody foresaw, at the frames 1 and 2."""

    def __init__(self) -> None:
        self.resets: dict[str, int] = {}
        self.restarted = 0

    def step(self, frame: Frame) -> Maps:
        if frame.index in (1, 2):
            raise RuntimeError("primitive of rtsp://me:secret@host/x")
        return Maps(*np.zeros((4, 2, 2), np.uint8))

    def reset(self) -> None:
        self.restarted += 1


def test_an_unforeseen_error_is_the_cameras_trouble_and_passes(tmp_path: Path) -> None:
    stream = CameraStream(Camera("a", "0"), CAMVID, threading.Condition())
    segmenter = Failing()
    camera = WatchedCamera(stream, segmenter)
    troubles = []
    for index in range(4):
        camera.step(Arrived(Frame(np.zeros((2, 2, 3), np.uint8), index, 0.0), time.monotonic()))
        troubles.append(camera.state().trouble)
    assert troubles == ["", *2 * ["RuntimeError: primitive of rtsp://***@host/x"], ""]
    assert camera.state().frames == 2 and segmenter.restarted == 2


def served(host: str = "127.0.0.1", late: str = "", allow: tuple[str, ...] = ()) -> MetricsServer:
    return MetricsServer(host, 0, lambda: "text\n", lambda: late, allow)


def answer(server: MetricsServer, host: str) -> int:
    address = http.client.urlsplit(server.address)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_S)
    connection.request("GET", "/metrics", headers={"Host": host})
    return connection.getresponse().status


def test_figures_are_served_at_ipv6_and_to_names_of_this_machine_alone() -> None:
    with closing(served("::1", allow=("cameras.example",))) as server:
        assert server.address.startswith("http://[::1]:")
        port = server.address.rpartition(":")[2].partition("/")[0]
        for host in (f"[::1]:{port}", "localhost", "Cameras.example:80"):
            assert answer(server, host) == 200
        for host in ("evil.example", "127.0.0.1.evil.example", ""):
            assert answer(server, host) == 403


def test_figures_of_a_driver_that_hangs_are_an_error() -> None:
    with closing(served(late="no round for 31 s")) as server:
        assert answer(server, "127.0.0.1") == 503


@pytest.mark.slow
def test_silent_connections_end_and_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadyseg.app.scale.cameras.metrics.REQUEST_WITHIN_S", 1.0)
    with closing(served()) as server:
        address = http.client.urlsplit(server.address)
        before = threading.active_count()
        silent = [socket.create_connection((address.hostname, address.port)) for _ in range(40)]

        def is_closed() -> bool:
            """Sends another letter: a few now and then must not hold a thread either."""
            assert threading.active_count() - before <= 17
            try:
                return not silent[0].send(b"G")
            except OSError:
                return True

        wait_for(is_closed)
        wait_for(lambda: threading.active_count() <= before)
        assert answer(server, "localhost") == 200
        for connection in silent:
            connection.close()


class Stuck:
    """A camera whose first frame is never done, and that has no second: else the worker's thread would never rest."""

    def __init__(self) -> None:
        self.stream, self.begun, self.done = self, threading.Event(), threading.Event()

    def waiting_since(self) -> float | None:
        return None if self.begun.is_set() else 0.0

    def take(self) -> None:
        return None

    def step(self, arrived: object) -> None:
        self.begun.set()
        self.done.wait(PATIENCE_S)

    def state(self) -> CameraState:
        return CameraState("a")


def test_a_worker_whose_network_never_answers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # This process keeps its own cores.
    monkeypatch.setattr("steadyseg.app.scale.cameras.worker.pin_core", lambda: None)
    worker, stuck = CameraWorker(VideoOptions()), Stuck()
    worker.begin([stuck])  # type: ignore[list-item]
    assert stuck.begun.wait(PATIENCE_S) and worker.states() == [CameraState("a")]
    monkeypatch.setattr("steadyseg.app.scale.cameras.worker.STEP_WITHIN_S", 0.1)
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="a frame takes more than"):
        worker.states()
    stuck.done.set()
