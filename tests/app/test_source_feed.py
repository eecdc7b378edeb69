"""The server's own video as the tab Live shows it: one reader for all visitors, its pace, its failures."""

import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from made.local_server import send, serving, status
from made.video import grey_frames, quarters, write_video
from made.waiting import PATIENCE_S, wait_for
from PIL import Image

from steadyseg.app.page.live.source_feed import SourceFeed, Subscription
from steadyseg.core.errors import InputError


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may open a source late."""
    monkeypatch.setattr("steadyseg.app.page.live.source_feed.PATIENCE_S", PATIENCE_S)


def readers() -> int:
    return sum(thread.name == "feed" for thread in threading.enumerate())


def used_by_readers_s() -> float:
    """Processor time of the reading threads alone; other threads of the tests' process may be busy."""
    clocks = [time.pthread_getcpuclockid(t.ident or 0) for t in threading.enumerate() if t.name == "feed"]
    return sum(time.clock_gettime(clock) for clock in clocks)


def times_of(watch: Subscription, count: int) -> list[float]:
    return [watch.newest()[1] for _ in range(count)]


def test_a_recording_gives_each_frame_once_and_begins_again() -> None:
    watch = SourceFeed("street:3:3").subscribe()
    times_s = times_of(watch, 5)
    watch.close()
    assert times_s == sorted(set(times_s))
    assert times_s[-1] - times_s[0] > 5, "the second time round is far away in time"


def test_a_photograph_is_opened_once_and_given_twice_a_second(tmp_path: Path) -> None:
    Image.fromarray(quarters()).save(tmp_path / "photo.png")
    watch = SourceFeed(str(tmp_path / "photo.png")).subscribe()
    first, _, began_s = watch.newest()
    (tmp_path / "photo.png").unlink()
    times_s = times_of(watch, 3)
    lasted_s, used_s = time.perf_counter() - began_s, used_by_readers_s()
    watch.close()
    assert (first == quarters()).all()
    assert times_s == sorted(set(times_s)) and all(time_s % 0.5 == 0 for time_s in times_s), "the temporal mean goes on"
    assert lasted_s > 1.4 and used_s < 0.5 * lasted_s


def test_a_picture_that_stands_for_long_in_a_recording_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("steadyseg.app.page.live.source_feed.PATIENCE_S", 2.0)
    film = write_video(tmp_path / "film.mp4", grey_frames(2), times_s=(0.0, 9.0))
    watch = SourceFeed(str(film)).subscribe()
    assert times_of(watch, 3) == [0.0, 1.0, 2.0]
    watch.close()
    wait_for(lambda: readers() == 0)


def test_all_visitors_share_one_reader_which_ends_after_the_last(tmp_path: Path) -> None:
    feed = SourceFeed(str(write_video(tmp_path / "film.mp4", grey_frames(250))))
    first, second = feed.subscribe(), feed.subscribe()
    pictures = [first.newest() for _ in range(8)]
    assert readers() == 1
    late = second.newest()
    assert late[1] >= pictures[-1][1] > pictures[0][1], "who comes late gets the newest one"
    first.close()
    assert second.newest()[1] > late[1], "one left, and the other goes on"
    wait_for(lambda: share_a_picture(feed))
    second.close()
    wait_for(lambda: readers() == 0)
    anew = feed.subscribe()
    assert anew.newest()[0].shape == (48, 64, 3)
    anew.close()
    wait_for(lambda: readers() == 0)


def share_a_picture(feed: SourceFeed) -> bool:
    """True if two visitors get the same picture, not copies; a new picture may come between both."""
    watches = feed.subscribe(), feed.subscribe()
    one, other = (watch.newest()[0] for watch in watches)
    for watch in watches:
        watch.close()
    return one is other


def test_a_source_that_fails_tells_why_and_comes_back(tmp_path: Path) -> None:
    """A camera on the net that is down, up, down and up again, with two visitors before it."""
    film = write_video(tmp_path / "film.mp4", grey_frames(10), movflags="+faststart").read_bytes()
    up, asked = threading.Event(), []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        (send if up.is_set() else status(404))(handler, film, 1)

    with serving(answer, threading.Event()) as address:
        feed = SourceFeed(f"{address}/film.mp4?token=secret")
        visitors = [feed.subscribe(), feed.subscribe()]
        began_s = time.perf_counter()
        for _ in range(2):
            up.clear()
            for visitor in visitors:
                with pytest.raises(InputError, match=r"film\.mp4.* cannot be opened .*next try within [124] s") as told:
                    times_of(visitor, 1000)
                assert "secret" not in str(told.value)
            up.set()
            for visitor in visitors:
                wait_for(lambda visitor=visitor: gives_one(visitor))
        lasted_s = time.perf_counter() - began_s
        for visitor in visitors:
            visitor.close()
        wait_for(lambda: readers() == 0)
    assert len(asked) < 5 + 6 * lasted_s, "both wait for one reader, which waits too"


def gives_one(visitor: Subscription) -> bool:
    try:
        visitor.newest()
    except InputError:
        return False
    return True


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("/no/such/folder/film.mp4", "no such file or folder: 'film.mp4'; "),
        ("/no/such/images/", "no such file or folder: 'images'; "),
        ("97", "camera 97: does not open or gives no picture; "),
    ],
)
def test_what_is_missing_is_said_without_its_folder(spec: str, expected: str) -> None:
    watch = SourceFeed(spec).subscribe()
    with pytest.raises(InputError) as told:
        watch.newest()
    watch.close()
    assert str(told.value).startswith(expected) and "/no/such" not in str(told.value)
