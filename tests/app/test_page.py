"""The page, as a visitor's browser sees it, and the parts behind it."""

import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch
from made_video import write_video

from app.page import build_page, check_address, launch
from app.page_file import STREET, Progress, Result, segment_file
from app.page_report import report_html
from app.page_session import MOST_SESSIONS, Sessions
from app.page_settings import Settings
from app.page_stream import RATE_HZ, LiveStream
from core.checkpoint import CheckpointMeta, save_checkpoint
from core.classes import CAMVID
from core.errors import InputError
from seg.networks import build_network
from seg.options import UNetOptions

# The two warnings: Gradio's own use of pandas, after each event, in its server's threads.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
]

PROJECT = Path(__file__).parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BROWSER_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 60_000
"""Only a page that hangs takes that long, also where other work leaves this one a tenth of a core."""


def stripes(count: int, height: int = 120, width: int = 160) -> list[np.ndarray]:
    """Coloured stripes that wander to the right: no two neighbours are equal."""
    ramp = np.indices((height, width))[1]
    return [
        np.stack([(ramp * 3 + 9 * index) % 256, (ramp * 5 + 20 * index) % 256, (255 - ramp) % 256], -1).astype(np.uint8)
        for index in range(count)
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An untrained width-4 network as a checkpoint, its logits stretched so that it is surer here than there."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    options = dataclasses.asdict(UNetOptions(width=4))
    tensors = build_network("unet", options, len(CAMVID)).state_dict()
    tensors["head.weight"] *= 40
    mean_std = {"mean": (0.41, 0.42, 0.43), "std": (0.3, 0.3, 0.3)}
    save_checkpoint(path, tensors, CheckpointMeta("unet", options, CAMVID, height=96, width=128, **mean_std))
    return str(path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Gradio keeps uploads and results."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def address(model: str, cache: Path) -> Iterator[str]:
    """The page, served by this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(cache))
        page = build_page(model)
        yield launch(page, "127.0.0.1", free_port())
        page.close(verbose=False)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, whose camera shows wandering stripes."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    camera = tmp_path_factory.mktemp("camera") / "camera.mjpeg"
    with av.open(str(camera), "w", format="mjpeg") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuvj420p"
        for image in stripes(50):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
        container.mux(stream.encode())
    with sync_playwright() as playwright:
        flags = [*BROWSER_FLAGS, f"--use-file-for-fake-video-capture={camera}"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()


@contextmanager
def visitor(browser: Any, address: str) -> Iterator[Any]:
    """The page in a context of its own; whatever it asks of another host fails the test."""
    foreign: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800}, permissions=["camera"])
    context.on("request", lambda request: foreign.append(request.url) if is_foreign(request.url, address) else None)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.get_by_role("tab", name="File").wait_for()
    yield page
    context.close()
    assert not foreign


def is_foreign(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_camera(page: Any) -> None:
    page.locator("#camera [title='grant webcam access'] button").click()
    page.locator("#camera").get_by_text("Record").click()


REMEMBER_FIRST_STATUS = """() => new MutationObserver(() => {
  const text = document.querySelector('#status').innerText;
  if (text.includes('dropped')) window.firstStatus ??= text;
}).observe(document.querySelector('#status'), {subtree: true, childList: true, characterData: true})"""


def frames_looked_at(status: str) -> int:
    """0 before the first frame."""
    found = re.search(r"(\d+) of (\d+) dropped", status)
    return int(found[2]) - int(found[1]) if found else 0


def choose_file(page: Any, path: Path) -> None:
    page.get_by_role("tab", name="File").click()
    page.locator("#upload input[type=file]").set_input_files(path)
    page.locator("#upload").get_by_text(path.stem[:6]).first.wait_for()
    page.locator("#start").click()


def wait_until(condition: Any, seconds: float = PATIENCE_MS / 1e3) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)


# --- in the browser


def test_the_page_says_what_it_shows_and_what_is_degraded(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        text = page.locator("body").inner_text()
        assert page.locator("#model input").input_value() == "tiny.safetensors"
    for expected in ("SteadySeg", "vq-bnn", "Pedestrian", "sure", "not calibrated", "CPU"):
        assert expected in text


def test_the_number_of_looks_is_asked_only_where_it_counts(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        looks = page.locator("#looks")
        assert not looks.is_visible()
        page.get_by_text("many random looks").click()
        looks.wait_for(state="visible")
        assert looks.locator("input[type=number]").input_value() == "10"


def test_live_pictures_change_and_no_frame_reaches_the_disk(browser: Any, address: str, cache: Path) -> None:
    before = {path for path in cache.rglob("*") if path.suffix}
    with visitor(browser, address) as page:
        start_camera(page)
        seen: dict[str, set[str]] = {"overlay": set(), "uncertainty": set()}

        def both_have_changed_twice() -> bool:
            for name, sources in seen.items():
                sources.add(page.locator(f"#{name} img").get_attribute("src"))
            return all(len(sources) > 2 for sources in seen.values())

        wait_until(both_have_changed_twice)
        assert frames_looked_at(page.locator("#status").inner_text()) > 2
    assert all(source.startswith("data:image/jpeg;base64,") for sources in seen.values() for source in sources)
    assert {path for path in cache.rglob("*") if path.suffix} == before


def test_two_visitors_do_not_share_a_stream(browser: Any, address: str) -> None:
    with visitor(browser, address) as first, visitor(browser, address) as second:
        start_camera(first)
        wait_until(lambda: frames_looked_at(first.locator("#status").inner_text()) > 8)
        second.evaluate(REMEMBER_FIRST_STATUS)
        start_camera(second)
        second.wait_for_function("window.firstStatus")
        assert 0 < frames_looked_at(second.evaluate("window.firstStatus")) < 8


def test_a_video_plays_in_the_page_and_its_report_can_be_kept(
    browser: Any, address: str, cache: Path, tmp_path: Path
) -> None:
    video = write_video(tmp_path / "stripes.mp4", stripes(30))
    with visitor(browser, address) as page:
        choose_file(page, video)
        page.locator("#report").get_by_text("mean confidence").wait_for()
        page.wait_for_function("document.querySelector('#video video')?.currentTime > 0.1")
        size = page.evaluate(
            "(v => [v.readyState > 1, v.videoWidth, v.videoHeight])(document.querySelector('#video video'))"
        )
        with page.expect_download() as download:
            page.locator("#download-report").click()
        record = json.loads(Path(download.value.path()).read_text())
        assert len(list(cache.glob("session-*/*"))) == 2
    assert size == [True, 320, 120]
    assert (record["source"], record["frames"], record["dropped"]) == ("stripes.mp4", 30, 0)
    wait_until(lambda: not list(cache.glob("session-*")))


def test_a_hostile_upload_gets_one_line_and_the_page_lives_on(browser: Any, address: str, tmp_path: Path) -> None:
    hostile, picture = tmp_path / "hostile.mp4", tmp_path / "picture.png"
    hostile.write_text("<img src=x onerror=alert(1)> is not a video\n" * 100)
    from PIL import Image

    Image.fromarray(stripes(1)[0]).save(picture)
    with visitor(browser, address) as page:
        choose_file(page, hostile)
        message = page.get_by_text("not a readable video")
        message.wait_for()
        assert "hostile.mp4" in message.inner_text()
        assert "/" not in message.inner_text().replace("mp4, mkv", "")
        page.locator("#upload").get_by_label("Clear").click()
        choose_file(page, picture)
        page.locator("#picture img").wait_for()
        assert page.locator("#picture img").evaluate("i => i.naturalWidth") == 320


def test_the_street_is_measured_and_can_be_stopped(browser: Any, address: str) -> None:
    with visitor(browser, address) as page:
        page.get_by_role("tab", name="File").click()
        page.locator("#street").click()
        page.locator("#progress").get_by_text("s left").wait_for()
        page.locator("#stop").click()
        page.locator("#progress").get_by_text("stopped").wait_for()
        assert "calibration error (ECE)" in page.locator("#report").inner_text()
        assert not page.locator("#stop").is_visible()


def test_leaving_during_a_job_ends_it_and_leaves_nothing(browser: Any, address: str, cache: Path) -> None:
    with visitor(browser, address) as page:
        page.get_by_role("tab", name="File").click()
        page.locator("#street").click()
        page.locator("#progress").get_by_text("s left").wait_for()
        assert list(cache.glob("session-*"))
    wait_until(lambda: not list(cache.glob("session-*")))


# --- behind the page


class Clock:
    """Seconds that pass only when told."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_left_out_frames_are_a_gap_in_the_index_and_counted(model: str) -> None:
    clock, image = Clock(), stripes(1)[0]
    stream, settings = LiveStream(clock), Settings(model, "vq-dnn", 1)
    for seconds in (0, 1, 1, 4):
        clock.now_s += seconds / RATE_HZ
        status = stream.step(image, settings).status
    assert (stream.frames, stream.dropped) == (4, 3)
    assert "3 of 7 dropped" in status


def test_a_pause_starts_the_stream_anew_and_drops_nothing(model: str) -> None:
    clock, image = Clock(), stripes(1)[0]
    stream, settings = LiveStream(clock), Settings(model, "vq-dnn", 1)
    clear = stream.step(image, settings)
    clock.now_s += 1 / RATE_HZ
    assert stream.step(255 - image, settings).uncertainty != clear.uncertainty
    clock.now_s += 60
    assert stream.step(image, settings).overlay == clear.overlay
    assert stream.dropped == 0


def test_steady_remembers_the_frame_before_and_one_look_does_not(model: str) -> None:
    image = stripes(1)[0]
    for mode, same in (("dnn", True), ("vq-dnn", False)):
        clock = Clock()
        alone = LiveStream(clock).step(image, Settings(model, mode, 1))
        stream = LiveStream(clock)
        stream.step(255 - image, Settings(model, mode, 1))
        clock.now_s += 1 / RATE_HZ
        assert (stream.step(image, Settings(model, mode, 1)).uncertainty == alone.uncertainty) is same


def test_a_camera_picture_larger_than_any_camera_is_refused(model: str) -> None:
    with pytest.raises(InputError, match="camera: frames are 9000x2"):
        LiveStream().step(np.zeros((2, 9000, 3), np.uint8), Settings(model, "dnn", 1))


def run_file(spec: str, model: str, folder: Path, stop_after: int | None = None) -> Result:
    asked = 0

    def stop_asked() -> bool:
        nonlocal asked
        asked += 1
        return asked == stop_after

    *steps, result = segment_file(spec, Settings(model, "dnn", 1), folder, stop_asked)
    assert isinstance(steps[0], Progress) and isinstance(result, Result)
    return result


def test_what_was_done_until_a_stop_is_whole(model: str, tmp_path: Path) -> None:
    result = run_file(STREET, model, tmp_path, stop_after=3)
    assert result.stopped and result.record["frames"] == 3 and result.video is not None
    with av.open(str(result.video)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 3
    assert json.loads(result.report.read_text())["ece"] == result.record["ece"]


def test_both_views_of_a_large_video_fit_a_page_and_it_is_said(model: str, tmp_path: Path) -> None:
    video = write_video(tmp_path / "wide.mp4", stripes(2, 200, 2000))
    result = run_file(str(video), model, tmp_path)
    assert result.video is not None
    with av.open(str(result.video)) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (1920, 96)
    assert "fitted into 1920x96" in report_html(result.record)


def test_a_file_name_cannot_become_html(model: str, tmp_path: Path) -> None:
    video = write_video(tmp_path / "a<b>c.mp4", stripes(2))
    result = run_file(str(video), model, tmp_path)
    result.record["notes"] = ["<script>alert(1)</script>"]
    assert "<script" not in report_html(result.record)


def test_the_session_unused_for_longest_makes_room(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    with sessions.get("first").job() as folder:
        (folder / "result.mp4").write_bytes(b"video")
    oldest = sessions.get("first")
    for number in range(MOST_SESSIONS):
        sessions.get(f"visitor {number}")
    assert len(sessions) == MOST_SESSIONS
    assert oldest.stop_asked and not folder.exists()


def test_a_session_closed_during_its_job_leaves_nothing(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    with sessions.get("visitor").job() as folder:
        sessions.close("visitor")
        assert folder.exists(), "the encoder still writes there"
    assert not folder.exists()


def test_one_visitor_has_one_job_at_a_time(tmp_path: Path) -> None:
    session = Sessions(tmp_path).get("visitor")
    with session.job(), pytest.raises(InputError, match="already"), session.job():
        pass
    with session.job() as folder:
        assert folder.is_dir()


def test_a_taken_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"127.0.0.1:{port} .*choose another --port"):
            check_address("127.0.0.1", port)


def test_an_unknown_model_is_refused_before_anything_is_served() -> None:
    with pytest.raises(InputError, match="unknown model"):
        build_page("no-such-model")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_serve_says_where_it_is_and_ctrl_c_ends_it_cleanly(model: str, tmp_path: Path) -> None:
    port = free_port()
    code = f"import sys; from app.page import serve; sys.exit(serve('127.0.0.1', {port}, {model!r}, False))"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(3)]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=120) == 0
    assert f"http://127.0.0.1:{port}/" in lines[0]
    assert "tiny.safetensors" in lines[1] and "torch" in lines[1]
    assert "not calibrated" in lines[2]
    assert not list(tmp_path.glob("steadyseg-*"))
