"""Streams over a real local network connection: reconnection, time-outs, and no credentials in sight."""

import json
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest
from made.processes import free_port
from made.rtsp_camera import SYSTEM_PYTHON, Camera
from made.video import grey_frames, write_video
from made.waiting import PATIENCE_S
from refusals import error_after_work, refusal

from steadyseg.app.sources.live import LiveSource
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.url import open_url, redact, require_separator
from steadyseg.app.video.flags import VideoJob
from steadyseg.app.video.job import check_job
from steadyseg.core.errors import InputError

PAUSE_S = 0.5


class Served(BaseHTTPRequestHandler):
    """Serves a film with its length, and live streams without. /live is gone after two visits, /jpeg pauses."""

    film = b""
    live = b""
    seen: list[str]
    five_taken: threading.Event

    def do_GET(self) -> None:
        self.seen.append(self.path)
        if self.path in ("/page", "/snapshot"):
            jpeg = cv2.imencode(".jpg", grey_frames(9)[len(self.seen)])[1].tobytes()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(jpeg if self.path == "/snapshot" else b"<!doctype html><title>A video</title>")
            return
        if self.path == "/jpeg":
            self.send_motion_jpeg(grey_frames(8))
            return
        is_film = self.path.startswith("/film.mp4")
        if not is_film and sum(path.startswith("/live") for path in self.seen) > 2:
            self.send_error(404)
            return
        body = self.film if is_film else self.live
        self.send_response(200)
        if is_film:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_motion_jpeg(self, images: Iterable[np.ndarray]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=next")
        self.end_headers()
        for index, image in enumerate(images):
            if index == 6:
                self.five_taken.wait(PATIENCE_S)
                time.sleep(PAUSE_S)
            encoded, jpeg = cv2.imencode(".jpg", image)
            assert encoded
            self.wfile.write(b"--next\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(jpeg))
            self.wfile.write(jpeg.tobytes() + b"\r\n")

    def log_message(self, *message: object) -> None:
        """Quiet."""


@pytest.fixture
def five_taken() -> threading.Event:
    """The client has five pictures of /jpeg; the server waits for it before the seventh."""
    return threading.Event()


@pytest.fixture
def server(tmp_path: Path, five_taken: threading.Event) -> Iterator[str]:
    film = write_video(tmp_path / "film.mp4", grey_frames(12), movflags="+faststart").read_bytes()
    live = write_video(tmp_path / "live.ts", grey_frames(12)).read_bytes()
    handler = type("ThisCamera", (Served,), {"film": film, "live": live, "seen": [], "five_taken": five_taken})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_film_on_a_server_is_a_recording(server: str) -> None:
    with open_source(f"http://{server}/film.mp4") as source:
        assert not source.info.live and source.info.length == 12
        assert len(list(source)) == 12


def test_a_page_is_named(server: str) -> None:
    assert "it is a web page; give the address of the video" in refusal(open_source, f"http://{server}/page")


def test_a_picture_is_asked_for_again(server: str) -> None:
    with open_source(f"http://{server}/snapshot") as source:
        assert source.info.live and "asked for every 0.5 s" in source.info.notes[-1]
        frames = list(islice(source, 3))
    levels = [int(frame.image.mean()) for frame in frames]
    assert levels[0] < levels[1] < levels[2] and frames[0].time_s < frames[1].time_s < frames[2].time_s


def test_a_lost_stream_is_reconnected_and_finally_given_up(server: str) -> None:
    frames = []
    with open_url(f"http://me:secret@{server}/live?token=hidden", attempts=2, first_delay_s=0.01) as source:
        assert isinstance(source, LiveSource) and source.info.live and source.info.length is None
        with pytest.raises(InputError, match="gone after 2 attempts to reconnect") as caught:
            for frame in source:
                frames.append(frame)
    assert len(frames) == 24
    assert [frame.index for frame in frames if frame.discontinuity] == [0, 12]
    assert (np.diff([frame.time_s for frame in frames]) > 0).all()
    assert source.losses["reconnect"] == 1
    assert source.losses["mended_time"] == 0
    shown = f"{caught.value} {source.info}"
    assert "secret" not in shown and "hidden" not in shown and f"***@{server}/live?***" in shown


@pytest.mark.slow
def test_a_camera_that_is_gone_for_good_leaves_the_video_and_the_report(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("steadyseg.app.sources.live.LONGEST_DELAY_S", 0.01)
    output, report = tmp_path / "out.mp4", tmp_path / "report.json"
    arguments = ["video", f"http://{server}/live", "-o", output, "--report", report, "--model", "street-tiny"]
    assert "gone after 8 attempts" in error_after_work(capsys, *arguments)
    record = json.loads(report.read_text())
    assert record["frames"] > 0 and record["losses"]["reconnect"] == 1
    with open_source(str(output)) as source:
        assert len(list(source)) == record["frames"]


def test_motion_jpeg_has_the_times_of_its_arrival(server: str, five_taken: threading.Event) -> None:
    with open_url(f"http://{server}/jpeg") as source:
        assert source.info.live
        pictures = iter(source)
        began_s = time.monotonic()
        frames = list(islice(pictures, 5))
        five_taken.set()
        frames += islice(pictures, 2)
        elapsed_s = time.monotonic() - began_s
    assert [round(frame.image.mean()) for frame in frames] == pytest.approx([20, 24, 28, 32, 36, 40, 44], abs=2)
    assert PAUSE_S <= frames[6].time_s - frames[4].time_s <= elapsed_s  # 0.08 s at a guessed 25 fps


def test_waiting_for_a_reconnection_ends_when_stopped(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadyseg.app.sources.live.LONGEST_DELAY_S", PATIENCE_S)
    with open_url(f"http://{server}/live", first_delay_s=PATIENCE_S) as source:
        timer = threading.Timer(0.3, source.stop)
        pictures = iter(source)
        assert len(list(islice(pictures, 12))) == 12
        timer.start()
        began = time.monotonic()
        assert not list(pictures)
        assert time.monotonic() - began < PATIENCE_S, "it ended before the wait was over"
        timer.join()


@pytest.mark.parametrize("scheme", ["http", "rtsp"])
def test_nobody_there_is_one_line_without_the_password(scheme: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(InputError, match="cannot be opened") as caught:
        open_source(f"{scheme}://me:secret@127.0.0.1:{port}/live")
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None  # both hold the whole address


@pytest.mark.parametrize("scheme", ["http", "rtsp"])
def test_a_server_that_never_answers_is_given_up_in_time(scheme: str) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, pytest.raises(InputError, match=r"no answer within 0\.5 s"):
        open_url(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/live", timeout_s=0.5)


def test_addresses_are_shown_without_secrets() -> None:
    assert redact("rtsp://me:p@ss@cam:554/a?t=1") == "rtsp://***@cam:554/***?***"
    assert redact("http://cam/a") == "http://cam/a"
    assert redact("rtsp://cam/user=admin_password=x_channel=1/s.sdp") == "rtsp://cam/***"
    assert redact("http://cam/user=admin_password=x_channel=1/s.sdp") == "http://cam/user=***/s.sdp"
    for scheme in ("rtmp", "RTMPS", "rtsp", "rtpm", "rttp"):
        for path in ("live/KEY", "KEY/live/", "live/KEY/", "/KEY", "a/KEY/b/c", "live\nKEY"):
            assert redact(f"{scheme}://host:1935/{path}") == f"{scheme}://host:1935/***"
    assert redact("rtsp://u:p@[bad") == "rtsp://***@[bad"


def test_no_part_of_a_credential_survives_in_any_address() -> None:
    """5,000 addresses, unencoded passwords included: none raises or shows a secret, nor does any other text."""
    drawn = random.Random(0)
    letters = "aZ9/#?@:[]%&=;,!$ '\"\\é"
    for _ in range(5000):
        secret = "S3CR" + "".join(drawn.choices(letters, k=drawn.randint(0, 6))) + "ET"
        host = drawn.choice(("cam", "10.0.0.7:554", "[fe80::1]:554", "[bad", ""))
        key = drawn.choice(("password", "pwd", "token", "Key", "user", "auth"))
        plain = "".join(letter for letter in secret if letter not in "/?#@")
        url = drawn.choice(
            (
                f"rtsp://admin:{secret}@{host}/live",
                f"rtsp://{secret}:x@{host}",
                f"http://{host}/a?{key}={secret}",
                f"http://{host}/a#{key}={secret}",
                f"rtsp://{host}/{key}={plain}/s.sdp",
                f"{drawn.choice(('rtmp', 'rtsp', 'rtpm'))}://{host}/live/{plain}/{drawn.choice(('', 'a', 'b/'))}",
                f"rtsp://{host}/user=admin_{key}={plain}_channel=1",
            )
        )
        redact("".join(drawn.choices(letters + "://\n\udc80", k=drawn.randint(0, 30))))
        shown = redact(url)
        assert "S3CR" not in shown and not shown.endswith("ET") and redact(shown) == shown, url


@pytest.mark.parametrize("word", ["p#s", "p/s", "p?s", "p@s"])
def test_a_password_that_is_not_encoded_is_said(word: str) -> None:
    line = refusal(open_url, f"rtsp://u:{word}@127.0.0.1:9/street")
    assert "encode # as %23" in line and word not in line


@pytest.fixture
def start_camera() -> Iterator[Callable[..., Camera]]:
    """Starts a camera on a free port; it ends with the test."""
    started: list[Camera] = []
    needed = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
    if (
        not Path(SYSTEM_PYTHON).exists()
        or subprocess.run([SYSTEM_PYTHON, "-c", needed], capture_output=True).returncode
    ):
        pytest.skip("needs GStreamer's RTSP server (tests/made/rtsp_server.py says which packages)")
    yield lambda *transport: started.append(Camera(free_port(), *transport)) or started[-1]
    for camera in started:
        camera.kill()


@pytest.mark.slow
def test_a_camera_that_is_killed_and_returns_with_another_size(start_camera: Callable[..., Camera]) -> None:
    camera = start_camera()
    sizes: list[tuple[int, int]] = []
    streams = [0]
    with open_url(f"rtsp://127.0.0.1:{camera.port}/street", timeout_s=PATIENCE_S, first_delay_s=0.1) as source:
        for frame in source:
            if frame.discontinuity:
                sizes.append(frame.image.shape[:2])
                streams.append(0)
            streams[-1] += 1
            if streams[1:] == [5]:
                camera.kill()
                camera.start()
                camera.change_size()
            elif streams[2:] == [5]:
                break
    assert sizes == [(360, 640), (270, 480)]
    assert source.losses["reconnect"] == 1 and source.losses["size_change"] == 1


@pytest.mark.slow
def test_a_camera_that_offers_udp_alone_is_read(start_camera: Callable[..., Camera]) -> None:
    with open_url(f"rtsp://127.0.0.1:{start_camera('UDP').port}/street") as source:
        assert source.info.notes == ("read by UDP, as TCP was refused: losses smear",)
        assert next(iter(source)).image.shape[1] in (480, 640)


@pytest.mark.parametrize(
    "text",
    ["rtmp:/host/KEY", "RTMP:host/KEY.mp4", "rtmpp:/host/KEY", "rtsp:\\\\host\\KEY", "rtmps:KEY", "rtmp//host/KEY"],
)
def test_an_address_without_its_separator_is_no_file_and_shows_no_key(text: str) -> None:
    as_output = refusal(check_job, VideoJob("street:7:2", output=text))
    for refused in (as_output, refusal(open_source, text), refusal(require_separator, text)):
        assert "lacks ://" in refused and "KEY" not in refused
    require_separator(f"./{text}")
    require_separator("C:/video.mp4")
