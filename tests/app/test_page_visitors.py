"""What visitors can make the page keep, in memory and on the disk: sessions, bodies, messages, jobs, uploads."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from made.waiting import PATIENCE_S, wait_for
from page_visit import free_port

from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.server import Page, build_page
from steadyseg.app.page.visitors.disk import Disk
from steadyseg.app.page.visitors.gradio_memory import MAX_PENDING
from steadyseg.app.page.visitors.sessions import IDLE_S, MAX_SESSIONS, RESULTS_S, Session, Sessions
from steadyseg.core.errors import InputError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
]


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as opened:
        yield opened


# --- sessions


def press(client: httpx.Client, page: Page, button: str, session: str, **data: Any) -> httpx.Response:
    """Sends the event of a button: `street` to the queue, or `stop` past it."""
    event = event_of(page, button, session)
    return client.post("/gradio_api/run/predict" if button == "stop" else "/gradio_api/queue/join", json=event | data)


def event_of(page: Page, button: str, session: str) -> dict[str, Any]:
    config = page.blocks.config
    number = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == button)
    event = next(one for one in config["dependencies"] if any(target[0] == number for target in one["targets"]))
    values = {part["id"]: part["props"].get("value") for part in config["components"]}
    return {"data": [values[part] for part in event["inputs"]], "fn_index": event["id"], "session_hash": session}


@contextlib.contextmanager
def open_pages(client: httpx.Client, names: list[str]) -> Iterator[None]:
    """Pages that are open in browsers: each holds a connection."""
    with contextlib.ExitStack() as opened:
        for name in names:
            answer = opened.enter_context(client.stream("GET", f"/gradio_api/heartbeat/{name}"))
            assert answer.status_code == 200, answer.read()
        yield


def test_made_up_sessions_take_no_place_from_pages_and_a_newcomer_is_told_to_wait(
    client: httpx.Client, served: tuple[Page, str]
) -> None:
    page, kept = served[0], served[0].blocks.state_holder.session_data
    with httpx.Client(base_url=served[1], timeout=PATIENCE_S, limits=httpx.Limits(max_connections=None)) as pages:
        with open_pages(pages, ["reader"]):
            press(client, page, "stop", "reader")
            for number in range(MAX_SESSIONS + 10):
                assert press(client, page, "stop", f"made-up-{number}").status_code == 200
            assert len(page.sessions) <= MAX_SESSIONS and len(kept) <= MAX_SESSIONS
            assert "reader" in kept and "made-up-0" not in kept
            with open_pages(pages, [f"page{number}" for number in range(MAX_SESSIONS - 1)]):
                refused = press(client, page, "stop", "newcomer")
                assert refused.status_code == 503 and "64 visitors" in refused.json()["error"]
                assert press(client, page, "stop", "reader").status_code == 200
        wait_for(lambda: "reader" not in kept and "reader" not in page.sessions)
    for name in ("x" * 41, "a/b", "", "ä"):
        assert press(client, page, "stop", name).status_code == 503, name
    assert client.post("/gradio_api/run/predict", json={"data": [], "fn_index": 0}).status_code == 422


def test_a_page_has_eight_connections_at_most(client: httpx.Client, served: tuple[Page, str]) -> None:
    with open_pages(client, ["page"] * 8):
        assert client.get("/gradio_api/heartbeat/page").status_code == 503


def test_sessions_end_when_nobody_is_there_and_results_when_nobody_asks(tmp_path: Path) -> None:
    ended: list[str] = []
    sessions = Sessions(tmp_path, ended.append)
    with sessions.connection("page", listens=False), sessions.admit("working").job():
        with sessions.find("page").job() as results, sessions.admit("gone").job():
            pass
        for name in ("page", "working", "gone"):
            sessions.find(name).used_s -= RESULTS_S + 1
        sessions.expire()
        assert ended == ["gone"] and "page" in sessions and not results.exists()
    sessions.find("working").used_s -= IDLE_S - 5
    sessions.expire()
    assert ended == ["gone", "page"], "a page that was closed ends at once, and others after a while"


def test_a_session_with_a_job_or_files_makes_no_room(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    oldest = sessions.admit("made-up")
    with sessions.admit("first").job() as folder:
        (folder / "result.mp4").write_bytes(b"video")
    with contextlib.ExitStack() as jobs:
        for number in range(MAX_SESSIONS - 1):
            jobs.enter_context(sessions.admit(f"visitor-{number}").job())
        assert oldest.stop_reason and "made-up" not in sessions and folder.exists()
        with pytest.raises(InputError, match="64 visitors already; try again"):
            sessions.admit("one-more")
    assert len(sessions) == MAX_SESSIONS


# --- jobs and messages


def test_a_job_that_nobody_listens_to_ends_and_its_messages_go(
    client: httpx.Client, served: tuple[Page, str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, queue = served[0], served[0].blocks._queue
    monkeypatch.setattr("steadyseg.app.page.session_gate.GRACE_S", PATIENCE_S)
    assert press(client, page, "street", "deaf").status_code == 200
    wait_for(lambda: list(cache.glob("session-*")))  # the job has begun, however long that took
    monkeypatch.setattr("steadyseg.app.page.session_gate.GRACE_S", 0.1)
    assert press(client, page, "street", "deaf").status_code == 200
    wait_for(lambda: not page.sessions.find("deaf").busy and "deaf" not in queue.pending_messages_per_session)
    assert "deaf" not in queue.pending_event_ids_session


def test_messages_are_fetched_before_more_are_asked_for(client: httpx.Client, served: tuple[Page, str]) -> None:
    with open_pages(client, ["deaf"]):
        answers = [press(client, served[0], "street", "deaf").status_code for _ in range(MAX_PENDING + 1)]
    assert answers == [200] * MAX_PENDING + [503]


def test_jobs_cannot_pass_by_the_queue(client: httpx.Client, served: tuple[Page, str]) -> None:
    answer = client.post("/gradio_api/run/predict", json=event_of(served[0], "street", "hasty"))
    assert answer.status_code == 404


# --- bodies


def test_an_upload_is_one_file_and_nothing_else(client: httpx.Client, served: tuple[Page, str], cache: Path) -> None:
    stored = Path(client.post("/gradio_api/upload", files={"files": ("../ä b.mp4", b"video")}).json()[0])
    assert stored.parent.parent == cache and stored.name == "_ä b.mp4" and stored.read_bytes() == b"video"
    for parts in (
        {"field": (None, bytes(2_000_000))},
        [("files", ("a.mp4", b"x")), ("files", ("b.mp4", b"y"))],
        {"other": ("a.mp4", b"x")},
    ):
        assert client.post("/gradio_api/upload", files=parts).status_code == 422  # type: ignore[arg-type]
    assert client.post("/gradio_api/upload", content=b"nonsense").status_code == 422
    assert not list(cache.glob("incoming-*")) and len(list(cache.glob("*/*.mp4"))) == 1
    stored.unlink()


def begun(address: str, path: str, announced: int) -> socket.socket:
    """A request whose body does not come."""
    host = address.removeprefix("http://").rstrip("/")
    connection = socket.create_connection((host.split(":")[0], int(host.split(":")[1])))
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {announced}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n".encode()
    )
    return connection


def test_uploads_count_from_their_announcement_to_their_end(client: httpx.Client, address: str, cache: Path) -> None:
    with contextlib.ExitStack() as opened:
        for number in range(8):
            opened.enter_context(begun(address, "/gradio_api/upload", 2_900_000))
            wait_for(lambda number=number: len(list(cache.glob("incoming-*"))) == number + 1)  # type: ignore[misc]
        refused = client.post("/gradio_api/upload", files={"files": ("a.mp4", bytes(1_000_000))})
        assert refused.status_code == 507 and "disk space" in refused.json()["error"]
    wait_for(lambda: not list(cache.glob("incoming-*")))
    stored = client.post("/gradio_api/upload", files={"files": ("a.mp4", bytes(1_000_000))}).json()[0]
    Path(stored).unlink()


def test_a_body_that_does_not_come_is_given_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadyseg.app.page.session_gate.BODY_S", 0.2)
    monkeypatch.setattr("steadyseg.app.page.visitors.upload_route.SILENCE_S", 0.2)
    for path in ("/gradio_api/queue/join", f"/live/{'a' * 32}", "/gradio_api/upload"):
        with begun(address, path, 1000) as connection:
            assert b" 408 " in connection.recv(100), path


def test_bodies_together_have_a_limit(client: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadyseg.app.page.session_gate.BODIES", 1_500_000)
    with begun(address, f"/live/{'a' * 32}", 1_000_000):
        wait_for(lambda: client.post(f"/live/{'b' * 32}", content=bytes(900_000)).status_code == 503)
    wait_for(lambda: client.post(f"/live/{'b' * 32}", content=bytes(900_000)).status_code == 422)


# --- the disk


def stored(folder: Path, name: str = "film.mp4") -> Path:
    """An upload as the page keeps it."""
    path = folder / ("0" * 64) / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"video")
    return path


def test_an_identical_upload_stays_when_another_visitor_leaves(tmp_path: Path) -> None:
    sessions, upload = Sessions(tmp_path), stored(tmp_path)
    one, other = sessions.admit("one"), sessions.admit("other")
    with one.job() as mine, other.job() as theirs:
        own = one.take(str(upload), mine)
        copy = other.take(str(upload), theirs)
        sessions.end("one")
        assert own.exists() and upload.exists(), "its job still reads the one, the other visitor has the other"
        sessions.end("other")
        assert copy.read_bytes() == b"video" and not upload.exists()
    assert not mine.exists() and not theirs.exists()
    one = sessions.admit("one")
    with one.job() as mine:
        one.take(str(stored(tmp_path)), mine)
        anew = tmp_path / "tmpanew"
        anew.write_bytes(b"video")
        anew.rename(upload)  # as somebody else's upload takes the same place in the meantime
        sessions.end("one")
    assert upload.exists()


@pytest.mark.parametrize("spec", ["http://127.0.0.1/x", "street", "{0}/session-1/film.mp4", "{0}/../x", "{1}", "x\0y"])
def test_a_job_takes_nothing_but_uploads(tmp_path: Path, spec: str) -> None:
    link = tmp_path / ("1" * 64) / "link.mp4"
    link.parent.mkdir()
    link.symlink_to(stored(tmp_path))
    with pytest.raises(InputError, match="choose"):
        Session(tmp_path).take(spec.format(tmp_path, link), tmp_path)


def test_one_visitor_has_one_job_at_a_time(tmp_path: Path) -> None:
    session = Session(tmp_path)
    with session.job(), pytest.raises(InputError, match="already"), session.job():
        pass
    with session.job() as folder:
        assert folder.is_dir()


def test_the_quota_counts_what_is_written_and_what_is_announced_and_old_uploads_go(tmp_path: Path) -> None:
    disk, upload = Disk(tmp_path, 2**17), stored(tmp_path)
    (tmp_path / "half").write_bytes(bytes(2**19))
    with Session(tmp_path).job() as folder:
        (folder / "film.mp4").hardlink_to(upload)
        disk.require_room(2**18), disk.require_room(2**19 - 2**13)  # type: ignore[func-returns-value]
        with disk.reserve(2**18) as incoming, pytest.raises(InputError, match="disk space"):
            (incoming / "part").write_bytes(bytes(2**18))  # counts once: it was announced
            disk.require_room(2**17)
            disk.require_room(2**18)
        assert not incoming.exists() and not disk.is_full()
        disk.sweep()
        assert upload.exists()
        for path in (upload.parent, folder, tmp_path / "half"):
            os.utime(path, (1, 1))
        disk.sweep()
        assert not upload.exists() and not (tmp_path / "half").exists() and (folder / "film.mp4").exists()


def test_uploads_that_no_job_took_make_room_for_smaller_ones_and_for_results(tmp_path: Path) -> None:
    disk, uploads = Disk(tmp_path, 2**17), [tmp_path / f"{number:064}" / "film.mp4" for number in range(8)]
    for path in uploads:
        path.parent.mkdir()
        path.write_bytes(bytes(2**17))
    taken = Session(tmp_path)
    with taken.job() as folder:
        taken.take(str(uploads[0]), folder)
        with pytest.raises(InputError, match="disk space"):
            disk.require_room(2**17)  # no upload is larger than this one
        assert all(path.exists() for path in uploads)
        with disk.reserve(2**16):
            assert sum(path.exists() for path in uploads) == 7 and uploads[0].exists()
        left = next(path for path in uploads[1:] if path.exists())
        os.utime(left, (1, 1))
        with disk.reserve(2**17), disk.reserve(2**17), pytest.raises(InputError):
            disk.require_room(2**17)
        assert not left.exists(), "an old one makes room for one of its size, once"
        for number in range(7):
            (folder / f"{number}.png").write_bytes(bytes(2**17))
        assert not disk.is_full() and [path for path in uploads if path.exists()] == uploads[:1]
        (folder / "7.png").write_bytes(bytes(1))
        assert disk.is_full()


def test_the_disk_is_measured_while_files_come_and_go(tmp_path: Path) -> None:
    disk, ended = Disk(tmp_path, 2**20), threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            with Session(tmp_path).job() as folder:
                for number in range(20):
                    (folder / f"{number}.png").write_bytes(b"x")
                for path in folder.iterdir():
                    path.unlink()
                folder.rmdir()

    visitors = [threading.Thread(target=come_and_go) for _ in range(2)]
    for visitor in visitors:
        visitor.start()
    try:
        for _ in range(300):
            disk.is_full()
    finally:
        ended.set()
        for visitor in visitors:
            visitor.join()


def test_a_job_stops_when_the_disk_space_is_used_up(
    client: httpx.Client, served: tuple[Page, str], cache: Path
) -> None:
    with open_pages(client, ["full"]):
        assert press(client, served[0], "street", "full").status_code == 200
        with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": "full"}) as messages:
            for line in messages.iter_lines():
                if "process_generating" in line:
                    (cache / "much").write_bytes(bytes(25_000_000))
                if "process_completed" in line:
                    break
        (cache / "much").unlink()
    assert "disk space of this page is used up: this is what was done" in json.dumps(json.loads(line[6:]))


# --- addresses


@pytest.mark.parametrize("host", ["::1", "::"])
def test_ipv6_addresses_are_served(model: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    page = build_page(PageOptions(model=model, host=host, port=free_port(), open_browser=False))
    address = page.launch()
    try:
        assert httpx.get(f"{address}config").status_code == 200
    finally:
        page.close()
