"""The hand-over loses nothing of a file, only the old of a live source, and always lets its reader go."""

import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from made.video import grey_frames, write_video
from made.waiting import PATIENCE_S

from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.read_ahead import FrameQueue, read_ahead
from steadyseg.app.sources.source import Source, SourceInfo
from steadyseg.core.frame import Frame


class Script(Source):
    """A source whose every step a test controls."""

    def __init__(self, frames: Callable[[], Iterator[Frame]], live: bool) -> None:
        self.info = SourceInfo("script", 4, 3, 25.0, None, live)
        self.losses: Counter[str] = Counter()
        self.stopped = threading.Event()
        self._frames = frames

    def __iter__(self) -> Iterator[Frame]:
        return self._frames()

    def stop(self) -> None:
        self.stopped.set()


def frame(index: int, discontinuity: bool = False) -> Frame:
    return Frame(np.zeros((3, 4, 3), np.uint8), index, index / 25, discontinuity=discontinuity)


def within_patience(action: Callable[[], None]) -> None:
    """Runs it in a thread of its own, so that a deadlock is a failure and not a test run that hangs."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "deadlock"
    for failure in failures:
        raise failure


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "frame-reader"]


def test_a_file_arrives_complete_and_in_order_however_slow_the_caller(tmp_path: Path) -> None:
    with open_source(str(write_video(tmp_path / "made.mp4", grey_frames(40)))) as source:
        indices = []
        for got in read_ahead(source, capacity=2):
            indices.append(got.index)
            time.sleep(0.002)
    assert indices == list(range(40))
    assert not +source.losses
    assert not readers()


def test_a_files_reader_stays_at_most_the_capacity_ahead() -> None:
    produced = []

    def frames() -> Iterator[Frame]:
        for index in range(100):
            produced.append(index)
            yield frame(index)

    stream = read_ahead(Script(frames, live=False), capacity=3)
    next(stream)
    time.sleep(0.1)
    assert len(produced) <= 1 + 3 + 1  # taken, shelved, in the reader's hand
    within_patience(stream.close)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_live_source_or_a_recording_played_live_keeps_the_newest_and_counts_the_dropped(recorded: bool) -> None:
    drawn, taken = threading.Event(), threading.Event()

    def frames() -> Iterator[Frame]:
        yield frame(0)
        taken.wait(PATIENCE_S)
        for index in range(1, 10):
            yield frame(index)
        drawn.set()

    source = Script(frames, live=not recorded)
    began_s, stream = time.monotonic(), read_ahead(source, live=True)
    indices = [next(stream).index]
    taken.set()
    assert drawn.wait(PATIENCE_S)  # nobody took a frame meanwhile, and yet the reader went on
    indices += [got.index for got in stream]
    assert indices == [0, 9] and (not recorded or time.monotonic() - began_s >= 9 / 25)
    assert source.losses["dropped_newer_frame"] == 8


def test_a_dropped_reconnection_is_handed_on_to_the_frame_that_stays() -> None:
    taken, drawn = threading.Event(), threading.Event()

    def frames() -> Iterator[Frame]:
        yield frame(0, discontinuity=True)
        taken.wait(PATIENCE_S)
        yield from (frame(1, discontinuity=True), frame(2), frame(3))
        drawn.set()

    stream = read_ahead(Script(frames, live=True))
    next(stream)
    taken.set()
    drawn.wait(PATIENCE_S)
    last = next(stream)
    assert last.index == 3 and last.discontinuity
    stream.close()


@pytest.mark.parametrize("live", [False, True])
def test_the_readers_exception_reappears_as_itself_after_the_frames_before_it(live: bool) -> None:
    failure = OSError("the disk is gone")

    def frames() -> Iterator[Frame]:
        yield frame(0)
        raise failure

    def consume() -> None:
        got = []
        with pytest.raises(OSError) as caught:
            for each in read_ahead(Script(frames, live)):
                got.append(each.index)
        assert got == [0]
        assert caught.value is failure
        assert "frames" in [entry.name for entry in traceback.extract_tb(failure.__traceback__)]

    within_patience(consume)
    assert not readers()


@pytest.mark.parametrize("live", [False, True])
def test_stopping_early_frees_the_reader(live: bool) -> None:
    def consume() -> None:
        source = Script(lambda: map(frame, range(10**9)), live)
        stream = read_ahead(source)
        next(stream)
        stream.close()
        assert source.stopped.is_set()

    within_patience(consume)
    assert not readers()


def test_closing_waits_for_no_frame_from_a_source_that_listens_to_stop() -> None:
    source: Script

    def frames() -> Iterator[Frame]:
        yield frame(0)
        source.stopped.wait(2 * PATIENCE_S)  # a camera that is being reconnected

    def consume() -> None:
        stream = read_ahead(source)
        next(stream)
        stream.close()

    source = Script(frames, live=True)
    within_patience(consume)
    assert not readers()


def test_a_stream_that_was_never_begun_closes() -> None:
    within_patience(read_ahead(Script(lambda: iter(()), live=False)).close)


def test_the_time_of_every_frame_is_recorded() -> None:
    def frames() -> Iterator[Frame]:
        for index in range(3):
            time.sleep(0.01)
            yield frame(index)

    decode_ms: deque[float] = deque(maxlen=100)
    assert len(list(read_ahead(Script(frames, live=False), decode_ms=decode_ms))) == 3
    assert len(decode_ms) == 3 and min(decode_ms) >= 9


def test_a_queue_gives_up_in_time_and_says_so_to_both_sides() -> None:
    queue = FrameQueue[int](2, lambda dropped, newer: newer)
    assert queue.take(timeout_s=0.01) is None
    assert all(queue.put(item) for item in range(5)) and queue.take() == 3
    assert queue.stop() == [4]
    assert not queue.put(5) and queue.take() is None and queue.stop() == []


def test_an_error_meets_every_later_reader() -> None:
    queue = FrameQueue[int](1)
    queue.put(1)
    queue.finish(OSError("gone"))
    assert queue.take() == 1
    for _ in range(2):
        with pytest.raises(OSError, match="gone") as caught:
            queue.take()
        assert len(traceback.extract_tb(caught.tb)) == 2, "this test and the queue"
