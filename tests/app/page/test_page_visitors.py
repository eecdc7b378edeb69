"""What visitors can make the page keep on the disk, and for how long: results and uploads."""

from pathlib import Path

import httpx
import pytest
from made.page_visit import GRADIO, event_of, page_at
from made.waiting import PATIENCE_S, wait_for

from steadyseg.app.page.parts.sessions import MAX_SESSIONS, Session, Sessions
from steadyseg.app.page.server import Page
from steadyseg.core.errors import InputError

pytestmark = [pytest.mark.slow, *GRADIO]


def test_made_up_sessions_leave_no_more_files_than_64_pages(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    with sessions.find("working").job() as kept:
        for number in range(MAX_SESSIONS):
            with sessions.find(f"visitor-{number}").job():
                pass
        assert kept.exists() and "working" in sessions and "visitor-0" not in sessions
        assert len(list(tmp_path.glob("session-*"))) == MAX_SESSIONS


def test_leaving_during_a_job_ends_it_and_removes_its_files(client, served, cache):
    page, heard = served[0], {"session_hash": "leaving"}
    with httpx.Client(base_url=served[1], timeout=PATIENCE_S) as browser:
        with browser.stream("GET", "/gradio_api/heartbeat/leaving"):
            event = event_of(page, "street", "leaving")
            assert client.post("/gradio_api/queue/join", json=event).status_code == 200
            with browser.stream("GET", "/gradio_api/queue/data", params=heard) as messages:
                assert any("process_generating" in line for line in messages.iter_lines())
            assert list(cache.glob("session-*"))
        wait_for(lambda: "leaving" not in page.sessions and not list(cache.glob("session-*")))


def test_jobs_cannot_pass_by_the_queue(client: httpx.Client, served: tuple[Page, str]) -> None:
    answer = client.post("/gradio_api/run/predict", json=event_of(served[0], "street", "hasty"))
    assert answer.status_code == 404


def test_an_upload_stays_in_its_folder_and_goes_when_it_is_old(model, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    monkeypatch.setattr("steadyseg.app.page.layout.SWEEP_S", 1)
    monkeypatch.setattr("steadyseg.app.page.layout.KEEP_S", 1)
    with page_at(model) as (_, address):
        answer = httpx.post(f"{address}gradio_api/upload", files={"files": ("../ä b.mp4", b"video")})
        path = Path(answer.json()[0])
        assert path.parent.parent == tmp_path
        wait_for(lambda: not path.exists())


def stored(folder: Path, name: str = "film.mp4") -> Path:
    """An upload as the page keeps it."""
    path = folder / ("0" * 64) / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"video")
    return path


def test_an_identical_upload_stays_when_another_visitor_leaves(tmp_path: Path) -> None:
    sessions, upload = Sessions(tmp_path), stored(tmp_path)
    one, other = sessions.find("one"), sessions.find("other")
    with one.job() as mine, other.job() as theirs:
        own = one.take(str(upload), mine)
        copy = other.take(str(upload), theirs)
        sessions.end("one")
        assert own.exists() and upload.exists(), "its job still reads the one, the other visitor has the other"
        sessions.end("other")
        assert copy.read_bytes() == b"video" and not upload.exists()
    assert not mine.exists() and not theirs.exists()
    one = sessions.find("one")
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


def test_ipv6_addresses_are_served(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    with page_at(model, host="::1") as (_, address):
        assert httpx.get(f"{address}config").status_code == 200
