"""Frame times rise whatever the stamps do."""

from collections import Counter

import pytest

from steadyseg.app.sources.ffmpeg import FrameClock


def times(stamps: list[float | None]) -> tuple[list[float], int]:
    losses: Counter[str] = Counter()
    clock = FrameClock(0.1, losses)
    return [clock(stamp) for stamp in stamps], losses["mended_time"]


@pytest.mark.parametrize(
    ("stamps", "expected", "mended"),
    [
        ([5.0, 5.1, 5.3], [0, 0.1, 0.3], 0),
        ([None, None, None], [0, 0.1, 0.2], 3),
        ([0.0, None, 0.2], [0, 0.1, 0.2], 1),
        ([0.0, float("nan"), 0.2], [0, 0.1, 0.2], 1),
        ([0.0, 0.1, 0.1, 0.3], [0, 0.1, 0.2, 0.3], 1),
        ([0.0, 0.1, 0.05, 0.3], [0, 0.1, 0.2, 0.3], 1),
        ([8.0, 8.1, 0.0, 0.1, 0.2, 0.9], [0, 0.1, 0.2, 0.3, 0.4, 1.1], 2),
        ([0.0, 2.0**48, 0.2, 0.3, 0.4], [0, 0.1, 0.2, 0.3, 0.4], 3),
        ([0.0, 2.0**48, 2.0**48 + 1, 2.0**48 + 2], [0, 0.1, 1.09375, 2.09375], 1),
    ],
    ids=[
        "offset",
        "none at all",
        "one missing",
        "not a number",
        "repeated",
        "backward",
        "started anew",
        "one far away",
        "far away for good",
    ],
)
def test_stamps_become_rising_seconds(stamps: list[float | None], expected: list[float], mended: int) -> None:
    seconds, count = times(stamps)
    assert seconds == pytest.approx(expected)
    assert count == mended


def test_after_a_restart_the_clock_goes_on_from_the_given_time() -> None:
    clock = FrameClock(0.1, Counter())
    assert [clock(0.0), clock(0.1)] == pytest.approx([0, 0.1])
    clock.restart(3.0)
    assert [clock(77.0), clock(77.5)] == pytest.approx([3.0, 3.5])
    clock.restart(1.0)
    assert clock(0.0) == pytest.approx(3.6)
