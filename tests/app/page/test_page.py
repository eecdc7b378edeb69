"""The parts behind the page: settings, streams and their workers, the two addresses, file jobs, the command."""

import asyncio
import dataclasses
import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import cv2
import httpx
import numpy as np
import pytest
from made.graphs import Graphs
from made.page_visit import free_port, stripes
from made.video import write_video
from made.waiting import PATIENCE_S, wait_for

from steadyseg.app.page.about_tab import about
from steadyseg.app.page.file.file_job import STREET, Progress, Result, segment_file
from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.guard import guard_events
from steadyseg.app.page.live.live_routes import live_routes
from steadyseg.app.page.live.live_stream import RATE_HZ, LiveStream
from steadyseg.app.page.live.live_worker import LiveWorkers, Request
from steadyseg.app.page.live.source_feed import SourceFeed
from steadyseg.app.page.parts.controls import describe_temperature
from steadyseg.app.page.parts.network_pool import NetworkPool
from steadyseg.app.page.parts.pictures import jpeg, overlay_picture
from steadyseg.app.page.parts.report import diagram, report_html
from steadyseg.app.page.parts.settings import (
    MethodSettings,
    Settings,
    ViewSettings,
    method_options,
    offered_models,
    settings_from,
)
from steadyseg.app.page.server import build_page, check_address, own_network, with_source
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MethodOptions
from steadyseg.runtime.options import DEFAULT_MODEL

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]
PROJECT = Path(__file__).parents[3]
TICK_S = 1 / RATE_HZ


class OneOfEach(NetworkPool):
    """These tests run one after the other, so one compiled network of a kind serves them all."""

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[Any, Any] = {}

    def take(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def release(self, key: Any, network: Any) -> None: ...


POOL = OneOfEach()


@pytest.fixture(autouse=True)
def each_frame_waits_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where the network is quick; on a busy one a live frame shows maps of an earlier frame."""
    monkeypatch.setattr("steadyseg.runtime.every.QUICK_S", math.inf)


def of(model: str, **values: Any) -> Settings:
    """Settings of a single frame, unless said otherwise."""
    return Settings(MethodSettings(model, method_options(**{"mode": "dnn", **values})))


def test_settings_from_a_browser_are_checked_value_by_value(model: str) -> None:
    good = {"model": model, "mode": "bnn", "samples": 3, "min_confidence": 0.5, "hidden": [2, 9], "watch": [0.1, 0.9]}
    settings = settings_from(good, {model: model})
    assert settings == Settings(
        MethodSettings(model, MethodOptions("bnn", 3)),
        ViewSettings(min_confidence=0.5, hidden=frozenset({2, 9})),
        watch=(0.1, 0.9),
    )
    for bad in (
        {"model": "/etc/passwd"},
        {"model": []},
        {"mode": "all"},
        {"samples": 10**400},
        {"tau": "1"},
        {"tau": float("nan")},
        {"hidden": {"a": 1}},
        {"hidden": [300]},
        {"watch": [2, 0]},
        {"second": "x"},
        {"against": 3},
        {"opacity": True},
    ):
        with pytest.raises(InputError) as refused:
            settings_from(good | bad, {model: model})
        assert "/etc" not in str(refused.value)


def test_left_out_frames_are_a_gap_and_a_pause_starts_anew(model: str) -> None:
    images, settings = stripes(2), of(model, mode="vq-dnn", motion=False)

    def last(*times_s: float) -> bytes:
        stream = LiveStream(POOL)
        for image, time_s in zip(images, times_s, strict=True):
            shown = stream.step(image, settings, time_s)
        return shown.right

    assert last(0, TICK_S) != last(0, 9 * TICK_S), "a longer gap fades the memory further"
    alone = LiveStream(POOL).step(images[1], settings, 0.0).right
    assert last(0, 60) == alone and last(60, 0) == alone, "a pause, and a clock that was set back"
    assert last(0, TICK_S) != alone


def test_a_change_of_view_keeps_the_memory_and_a_change_of_method_starts_it_anew(model: str) -> None:
    images, steady = stripes(2), of(model, mode="vq-dnn", motion=False)
    other_view = replace(steady, view=ViewSettings(opacity=0.9, second="disagreement", min_confidence=0.3))

    def second_after(before: Settings) -> bytes:
        stream = LiveStream(POOL)
        stream.step(images[0], before, 0.0)
        return stream.step(images[1], steady, TICK_S).right

    alone = LiveStream(POOL).step(images[1], steady, 0.0).right
    assert second_after(steady) == second_after(other_view) != alone
    for change in ({"tau": 2.0}, {"calibrated": False}, {"mode": "dnn"}):
        assert second_after(of(model, **{"mode": "vq-dnn", "motion": False, **change})) == alone


def test_every_method_setting_counts(model: str) -> None:
    def second(settings: Settings) -> bytes:
        stream = LiveStream(POOL)
        return [stream.step(image, settings, TICK_S * index).right for index, image in enumerate(stripes(2))][1]

    changes = ({}, {"tau": 1.0}, {"calibrated": False}, {"motion": False}, {"mode": "dnn"})
    assert len({second(of(model, **{"mode": "vq-dnn", **change})) for change in changes}) == len(changes)


def test_two_methods_see_the_same_frames_and_their_flicker_is_counted(model: str) -> None:
    stream, settings = LiveStream(POOL), replace(of(model, mode="vq-dnn", motion=False), against=of(model).method)
    first, second = (stream.step(image, settings, TICK_S * index) for index, image in enumerate(stripes(2)))
    assert first.facts["flicker"] == [None, None]
    assert all(0 <= share <= 1 for share in second.facts["flicker"])
    alone = LiveStream(POOL)
    assert [alone.step(image, of(model), TICK_S * i).left for i, image in enumerate(stripes(2))][-1] == second.left


def test_an_inspected_pixel_tells_a_distribution(model: str) -> None:
    shown = LiveStream(POOL).step(stripes(1)[0], replace(of(model), watch=(1.0, 0.5)), 0.0)
    assert len(shown.facts["probs"][0]) == len(CAMVID) and sum(shown.facts["probs"][0]) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(("second", "remedy"), [("set-size", "steadyseg calibrate"), ("energy", "--familiarity")])
def test_a_second_picture_that_was_not_fitted_is_said_and_the_stream_goes_on(model, second, remedy):
    view, image = ViewSettings(second=second), stripes(1)[0]
    bare = of("street-tiny")
    shown = LiveStream(POOL).step(image, replace(bare, view=view), 0.0)
    assert remedy in shown.facts["note"] and shown.right == LiveStream(POOL).step(image, bare, 0.0).right
    fitted = LiveStream(POOL).step(image, replace(of(model, mode="vq-dnn"), view=view), 0.0)
    assert fitted.facts["note"] is None


def test_doubtful_pictures_are_coloured_have_figures_and_are_marked(model: str) -> None:
    shown = LiveStream(POOL).step(stripes(1)[0], of(model, mode="vq-dnn"), 0.0)
    assert shown.facts["verdict"]["level"] == "unlike" and "does not look like" in shown.facts["verdict"]["words"]
    assert shown.facts["confidence"] > 0 and sum(shown.facts["shares"]) == pytest.approx(1, abs=1e-3)
    drawn = cv2.imdecode(np.frombuffer(shown.left, np.uint8), cv2.IMREAD_COLOR)
    assert np.ptp(drawn, axis=2).max() > 50, "the overlay has colours"
    other = LiveStream(POOL).step(stripes(1)[0], of("street-tiny"), 0.0)
    assert other.facts["verdict"]["level"] in ("no statistics", "not calibrated") and other.facts["confidence"] > 0


def test_hidden_classes_keep_the_camera_and_doubt_is_grey() -> None:
    image = stripes(1, 4, 4)[0]
    label = np.zeros((4, 4), np.uint8)
    label[:, 2:] = 3
    confidence = np.full((4, 4), 240, np.uint8)
    confidence[0] = 50
    maps = Maps(label, confidence, label, label)
    shown = overlay_picture(
        Frame(image, 0, 0.0), maps, CAMVID, ViewSettings(opacity=1.0, min_confidence=0.5, hidden=frozenset({3}))
    )
    assert (shown[1:, 2:] == image[1:, 2:]).all()
    assert (shown[1:, :2] == CAMVID.colors[0]).all()
    assert (shown[0].min(1) == shown[0].max(1)).all() and (shown[0] < 160).all()


def asked(settings: Settings, picture: bytes | None) -> Request:
    return Request(settings, picture, time.perf_counter(), time.perf_counter(), Future())


def test_only_the_newest_frame_waits(model: str) -> None:
    workers, picture = LiveWorkers(2), jpeg(stripes(1)[0])
    requests = [asked(of(model), picture) for _ in range(5)]
    for request in requests:
        workers.offer("a" * 32, request)
    answers = [request.answer.result(timeout=PATIENCE_S) for request in requests]
    assert answers[-1] is not None and sum(answer is None for answer in answers) >= 3
    workers.close(PATIENCE_S)
    assert len(workers) == 0


def test_a_place_is_taken_with_the_first_picture_and_not_before(model: str) -> None:
    workers, good = LiveWorkers(1), jpeg(stripes(1)[0])
    with pytest.raises(InputError, match="start it with --source"):
        workers.offer("a" * 32, asked(of(model), None))
    for index, picture in enumerate((b"", b"nonsense", good[:200] + b"\xff\xd9")):
        with pytest.raises(InputError, match="camera: "):
            workers.offer(f"{index:032x}", asked(of(model), picture))
        assert len(workers) == 0
    first = asked(of(model), good)
    workers.offer("b" * 32, first)
    assert first.answer.result(timeout=PATIENCE_S) is not None and len(workers) == 1
    workers.close()


def test_a_page_that_ends_admits_nobody_and_python_waits_for_its_threads(model, monkeypatch):
    monkeypatch.setattr("steadyseg.app.page.live.source_feed.PATIENCE_S", PATIENCE_S)  # the street takes its time
    workers = LiveWorkers(2, SourceFeed("street:3:20").subscribe)
    first = asked(of(model), None)
    workers.offer("a" * 32, first)
    assert first.answer.result(timeout=PATIENCE_S) is not None
    daemons = {thread.name: thread.daemon for thread in threading.enumerate() if thread.name in ("live", "feed")}
    workers.close()
    for key in ("a", "b"):
        with pytest.raises(InputError, match="has ended"):
            workers.offer(32 * key, asked(of(model), None))
    assert daemons == {"live": False, "feed": False}


def test_idle_visitors_end_and_others_are_told_to_wait(model: str) -> None:
    workers, picture = LiveWorkers(1, idle_s=0.2), jpeg(stripes(1)[0])
    first = asked(of(model), picture)
    workers.offer("a" * 32, first)
    with pytest.raises(InputError, match="all 1 places are taken"):
        workers.offer("b" * 32, asked(of(model), picture))
    assert first.answer.result(timeout=PATIENCE_S) is not None
    wait_for(lambda: len(workers) == 0)
    second = asked(of(model), picture)
    workers.offer("b" * 32, second)
    assert second.answer.result(timeout=PATIENCE_S) is not None
    workers.close()


def test_a_crash_is_one_visitors_own(model, monkeypatch, capsys):
    workers, picture, step = LiveWorkers(2), jpeg(stripes(1)[0]), LiveStream.step

    def crashes(self: LiveStream, image: np.ndarray, settings: Settings, time_s: float) -> Any:
        if settings.view.opacity == 0:
            raise RuntimeError("/secret/path broke")
        return step(self, image, settings, time_s)

    monkeypatch.setattr(LiveStream, "step", crashes)
    good, bad = asked(of(model), picture), asked(replace(of(model), view=ViewSettings(opacity=0)), picture)
    workers.offer("a" * 32, good)
    workers.offer("b" * 32, bad)
    with pytest.raises(InputError) as told:
        bad.answer.result(timeout=PATIENCE_S)
    again = asked(of(model), picture)
    workers.offer("b" * 32, again)
    assert good.answer.result(timeout=PATIENCE_S) is not None and again.answer.result(timeout=PATIENCE_S) is not None
    workers.close()
    assert "secret" not in str(told.value) + capsys.readouterr().err


@pytest.fixture
def post(model: str) -> Any:
    """post(body, headers) -> (status, text) of a live address."""
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    workers = LiveWorkers(2)
    client = TestClient(Starlette(routes=live_routes(workers, {model: model})), "http://127.0.0.1:7860")

    def send(body: bytes, key: str = "a" * 32, **headers: str) -> tuple[int, bytes]:
        answer = client.post(f"/live/{key}", content=body, headers=headers)
        return answer.status_code, answer.content

    yield send
    workers.close()


def body_of(record: Any, picture: bytes) -> bytes:
    text = json.dumps(record).encode()
    return struct.pack("<Id", len(text), math.nan) + text + picture


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_one_request_is_one_frame(post: Callable[..., tuple[int, bytes]], model: str) -> None:
    status, content = post(body_of({"model": model, "mode": "dnn"}, jpeg(stripes(1)[0])))
    assert status == 200
    length, left = struct.unpack_from("<II", content)
    facts = json.loads(content[8 : 8 + length])
    assert (facts["width"], facts["height"], len(facts["shares"])) == (160, 120, 11)
    assert all(part[:2] == b"\xff\xd8" for part in (content[8 + length :], content[8 + length + left :]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_not_a_frame_of_this_page_is_refused_in_one_line(post, model):
    picture, record = jpeg(stripes(1)[0]), {"model": model}
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    large = jpeg(np.zeros((8, 2500, 3), np.uint8))
    for expected, answer in (
        ("cannot be read", post(b"\x05\x00\x00\x00nonsense")),
        ("cannot be read", post(body_of([1], picture))),
        ("does not offer", post(body_of({"model": "/etc/passwd"}, picture))),
        ("JPEG", post(body_of(record, png))),
        ("16 to 1920 a side", post(body_of(record, large))),
        ("--source", post(body_of(record, b""))),
    ):
        assert answer[0] == 422 and expected in json.loads(answer[1])["error"], expected


def run_file(
    spec: str, settings: Settings, folder: Path, stop_after: int | None = None, masks: bool = False, **more: Any
) -> Result:
    count = 0

    def stop_asked() -> bool:
        nonlocal count
        count += 1
        return count == stop_after

    *steps, result = segment_file(spec, settings, folder, POOL, stop_asked, keep_masks=masks, **more)
    assert isinstance(steps[0], Progress) and isinstance(result, Result)
    return result


def test_a_wide_video_is_reduced_without_a_note_of_another_size(model: str, tmp_path: Path) -> None:
    video = write_video(tmp_path / "wide.mp4", [np.full((90, 1000, 3), 99, np.uint8)] * 2)
    result = run_file(str(video), of(model), tmp_path)
    assert result.video is not None and "another size" not in " ".join(result.record["notes"])
    with av.open(str(result.video)) as container:
        assert container.streams.video[0].width == 1920


def test_what_was_done_until_a_stop_is_whole(model: str, tmp_path: Path) -> None:
    result = run_file(STREET, of(model), tmp_path, stop_after=3)
    assert result.stopped and result.record["frames"] == 3 and result.video is not None and result.metrics is not None
    with av.open(str(result.video)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 3
    assert json.loads(result.report.read_text())["ece"] == result.record["ece"]
    result.record["notes"] = ["<script>alert(1)</script>"]
    assert "<script" not in report_html(result.record)
    drawn = diagram(result.metrics["reliability"])
    assert drawn.count("<rect") == sum(one["count"] > 0 for one in result.metrics["reliability"]) > 0


def test_the_network_runs_on_the_frames_that_a_visitor_chooses(model: str, tmp_path: Path) -> None:
    result = run_file(STREET, of(model), tmp_path, stop_after=4, every=3)
    assert (result.record["frames"], result.record["network_frames"]) == (4, 2)
    assert "ran on 2 of 4 frames" in report_html(result.record)


@pytest.mark.parametrize(("limit", "said"), [(3, ""), (2, "stopped after 2 frames, the most on this page")])
def test_a_file_is_stopped_if_it_has_more_frames_than_the_limit(model, tmp_path, monkeypatch, limit, said):
    monkeypatch.setattr("steadyseg.app.page.file.file_job.MAX_FRAMES", limit)
    assert run_file(str(write_video(tmp_path / "film.mkv", stripes(3))), of(model), tmp_path).stopped == said


def test_both_views_of_a_large_video_fit_a_page(graphs: Graphs, tmp_path: Path) -> None:
    video = write_video(tmp_path / "wide.mp4", stripes(2, 200, 2000))
    result = run_file(str(video), of(str(graphs("vq-dnn")), mode="vq-dnn", tau=1.25, motion=False), tmp_path)
    assert result.video is not None
    with av.open(str(result.video)) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (1920, 114)


def test_a_video_larger_than_a_page_works_on_is_refused(model: str, tmp_path: Path) -> None:
    video = write_video(tmp_path / "huge.mp4", stripes(1, 2400, 4000))
    with pytest.raises(InputError, match=r"frames are 4000x2400; .* at most 9\.4 million pixels") as refused:
        run_file(str(video), of(model), tmp_path)
    assert str(tmp_path) not in str(refused.value)


def test_a_graph_file_is_served_with_its_own_method_alone(graphs: Graphs, tmp_path: Path) -> None:
    graph = str(shutil.copy(graphs("vq-dnn"), tmp_path / "mine.onnx"))
    record = {"model": "mine.onnx", "mode": "bnn", "samples": 3}
    settings = settings_from(record, offered_models(graph))
    shown = LiveStream(POOL).step(stripes(1)[0], settings, 0.0)
    assert len(shown.facts["shares"]) == 11 and shown.facts["note"] is None
    with pytest.raises(InputError, match=r"^mine\.onnx holds vq-dnn, tau 1\.25 alone; .* a single frame"):
        settings_from(record | {"against": "bnn"}, offered_models(graph))
    compared = settings_from(record | {"against": "dnn", "watch": [0.5, 0.5]}, offered_models(graph))
    stream, single = LiveStream(POOL), LiveStream(POOL)
    for second, shade in enumerate((60, 90, 120)):
        image = np.full((120, 160, 3), shade, np.uint8)
        facts = stream.step(image, compared, second / 15).facts
        alone = single.step(image, replace(compared, against=None), 10.0 * second).facts  # after a pause
    assert facts["probs"][0] == alone["probs"][0] != facts["probs"][1]
    result = run_file(STREET, settings, tmp_path, stop_after=2)
    assert (result.record["mode"], result.record["tau"], result.record["samples"]) == ("vq-dnn", 1.25, 1)
    assert "vq-dnn, tau 1.25" in describe_temperature(graph, MethodOptions()) and "11 classes" in about(graph)[0]
    build_page(PageOptions(model=graph)).close()
    with pytest.raises(InputError, match="holds the network alone; steadyseg export --stateful"):
        build_page(PageOptions(model=str(graphs("logits"))))


def test_a_card_can_bring_no_pictures_and_no_scripts(model: str) -> None:
    card = Path(model).with_suffix(".md")
    card.write_text(
        "# Mine\n![spy](http://elsewhere.example/x.png) <script>alert(1)</script> <img src=x> fine "
        "[figures](../../docs/x.md) [paper](https://arxiv.org/abs/2105.12639)"
    )
    _, shown = about(model)
    card.unlink()
    assert "Mine" in shown and "elsewhere" not in shown and "<" not in shown
    assert "fine figures [paper](https://arxiv.org/abs/2105.12639)" in shown, (
        "the page serves no file of the repository"
    )


def test_a_failure_nobody_foresaw_logs_no_name(capfd: pytest.CaptureFixture[str]) -> None:
    import gradio as gr

    def fail() -> None:
        raise RuntimeError("private-film.mp4")

    with gr.Blocks(analytics_enabled=False) as blocks:
        blocks.load(fail)
    guard_events(blocks, Path("/nowhere"))
    with pytest.raises(gr.Error, match="something failed"):
        asyncio.run(blocks.process_api(0, []))
    assert capfd.readouterr().err == "page: RuntimeError in fail\n"


def test_a_taken_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"127.0.0.1:{port} .*choose another --port"):
            check_address("127.0.0.1", port)


def test_wrong_flags_are_refused_before_anything_is_served() -> None:
    with pytest.raises(InputError, match="unknown model"):
        build_page(PageOptions(model="no-such-model"))
    good = PageOptions(model="street-tiny")
    for change, expected in (
        ({"port": 0}, "--port must lie in 1..65535, got 0"),
        ({"max_upload_mb": 0}, "--max-upload-mb"),
        ({"max_sessions": 0}, "--max-sessions"),
        ({"root_path": "/steadyseg/"}, "without a slash at its end"),
        ({"source": " \t"}, "--source ' .t'"),
    ):
        with pytest.raises(InputError, match=expected):
            dataclasses.replace(good, **change).check()  # type: ignore[arg-type]
    assert good.local and not replace(good, host="0.0.0.0").local and not replace(good, share=True).local


@pytest.mark.parametrize("source", ["drive.MP4", "street.png", "street:7:20", "3", "rtsp://camera/1", "http://host/a"])
def test_a_source_in_the_models_place_is_the_source(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("drive.MP4").touch()
    Path("street.png").touch()
    found = with_source(PageOptions(source))
    assert (found.model, found.source) == (DEFAULT_MODEL, source)
    with pytest.raises(InputError, match="two sources"):
        with_source(PageOptions(source, source="other.mp4"))


@pytest.mark.parametrize("model", ["street-tiny", "mine.onnx", "missing.mp4", "30000"])
def test_every_other_name_is_a_model(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.onnx").touch()
    assert with_source(PageOptions(model, source="3")) == PageOptions(model, source="3")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGTERM")
def test_serve_says_where_it_is_and_sigterm_ends_it_as_cleanly_as_ctrl_c(model: str, tmp_path: Path) -> None:
    port = free_port()
    arguments = ["demo", model, "--port", str(port), "--source", "street:3:20", "--no-open-browser"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "steadyseg.app.cli", *arguments]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            lines = [server.stdout.readline() for _ in range(4)]
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=PATIENCE_S) == 0
        finally:
            server.kill()
    assert f"http://127.0.0.1:{port}/" in lines[0]
    assert "tiny.safetensors" in lines[1] and "backend" in lines[1]
    assert "GPU" in lines[2] or "street" in lines[2]
    assert not list(tmp_path.glob("steadyseg-*"))


def test_gradio_is_imported_without_its_type_stubs() -> None:
    code = """
import inspect, sys
from steadyseg.app.page.server import import_gradio
opened, found = [], inspect.getfile
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
import_gradio()
print(len(opened) > 0, inspect.getfile is found, [name for name in opened if name.endswith(".pyi")])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert run.stdout.strip() == "True True []"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("http_proxy", "http://127.0.0.1:9"),
        ("All_Proxy", "socks://127.0.0.1:9"),
        ("HTTPS_PROXY", "no address"),
        ("no_proxy", "[::1"),
        ("SSL_CERT_FILE", "/absent"),
    ],
)
def test_variables_of_the_shell_do_not_reach_the_pages_own_client(monkeypatch, name, value):
    """A company's proxy would be asked for the page itself; the variables are there again afterwards."""
    monkeypatch.setenv(name, value)
    with own_network():
        assert name not in os.environ
        httpx.Client().close()
    assert os.environ[name] == value
    with own_network(share=True):
        assert "127.0.0.1" in os.environ["NO_PROXY"] and os.environ.get(name, "").startswith(value[:4])
    assert os.environ[name] == value and ("NO_PROXY" in os.environ) == (name == "NO_PROXY")
