"""The sequential alarm: how often it is wrong at home, how soon it detects another place, and when it ends. The
statement of a low expected accuracy."""

import numpy as np
import pytest

from steadyseg.core.alarm import LOW_BLOCKS, LowAccuracy, PlaceAlarm

HZ = 10
REFERENCE = 181
"""Smallest share of a reference of 180 frames: 1 / 181."""


def watch(alarm: PlaceAlarm, shares: list[float], start_s: float, hz: float = HZ) -> list[float | None]:
    return [alarm.update(share, start_s + number / hz) for number, share in enumerate(shares)]


def test_false_alarms_of_independent_seconds_are_rarer_than_one_an_hour() -> None:
    shares = np.random.default_rng(0).integers(1, REFERENCE + 1, 40 * 3600) / REFERENCE
    told = [one is not None for one in watch(PlaceAlarm(), shares.tolist(), 0.0, hz=1)]
    assert np.count_nonzero(np.diff(told, prepend=False)) / 2 <= 40


def test_another_place_is_told_within_five_seconds_and_since_it_began_and_ends_with_it() -> None:
    alarm = PlaceAlarm()
    assert not any(watch(alarm, [0.5] * 300, 0.0))
    foreign = watch(alarm, [1 / REFERENCE] * 100, 30.0)
    first = next(number for number, told in enumerate(foreign) if told is not None)
    assert first <= 5 * HZ and foreign[first] == pytest.approx(first / HZ, abs=1.1)
    assert all(told is not None for told in foreign[first:])
    home = watch(alarm, [0.5] * 300, 40.0)
    assert home[0] is not None and home[-1] is None and None not in home[:30], "no flicker while the place changes"
    assert sum(told is not None for told in home) <= 15 * HZ


def test_frames_of_one_second_are_one_piece_of_evidence_however_many() -> None:
    alarm = PlaceAlarm()
    assert watch(alarm, [1 / REFERENCE] * 2000, 0.0, hz=2000)[-1] is None
    assert watch(alarm, [0.5] * 300, 1.0)[-1] is None


def test_a_clip_that_is_played_again_goes_on() -> None:
    alarm = PlaceAlarm()
    told = [one for _ in range(10) for one in watch(alarm, [1 / REFERENCE] * 20, 0.0)]
    assert told[-1] == pytest.approx(10 * 1.9) and told.index(next(one for one in told if one)) <= 6 * HZ


def expect(low: LowAccuracy, shares: list[float], start_s: float) -> list[float | None]:
    return [low.update(share, start_s + number / HZ, 0.8) for number, share in enumerate(shares)]


def test_a_low_expected_accuracy_is_said_after_two_seconds_and_since_it_began() -> None:
    low = LowAccuracy()
    assert not any(expect(low, [0.9] * 100, 0.0))
    told = expect(low, [0.7] * 100, 10.0)
    first = next(number for number, seconds in enumerate(told) if seconds is not None)
    assert LOW_BLOCKS * HZ <= first < (LOW_BLOCKS + 1) * HZ and told[first] == pytest.approx(first / HZ, abs=1.1)
    again = expect(low, [0.9] * 100, 20.0)
    assert None not in again[: LOW_BLOCKS * HZ] and again[(LOW_BLOCKS + 1) * HZ] is None


def test_what_goes_up_and_down_about_the_limit_is_said_once_or_never() -> None:
    wave = ([0.9] * HZ + [0.7] * HZ) * 20
    fresh, said = LowAccuracy(), LowAccuracy()
    assert not any(expect(fresh, wave, 0.0))
    expect(said, [0.7] * 10 * HZ, 0.0)
    assert None not in expect(said, wave, 10.0)


def test_a_high_mean_of_few_low_frames_is_not_low() -> None:
    assert not any(expect(LowAccuracy(), ([0.7] + [0.85] * 9) * 30, 0.0))
