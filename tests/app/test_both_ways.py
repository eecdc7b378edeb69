"""Frames of a file between two network calls: their maps come from both sides, in order, and none is lost."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from steadyseg import Frame, open_segmenter
from steadyseg.app.both_ways import segment_file
from steadyseg.core.segmenter import segment
from steadyseg.street.drive import Street


@cache
def drive(count: int, seed: int = 5) -> list[Frame]:
    return list(Street(seed=seed).frames(count, 0))


def test_maps_of_both_sides_are_nearer_to_the_truth_than_those_of_one() -> None:
    frames, right = drive(13), {segment: 0.0, segment_file: 0.0}
    for run in right:
        shown = list(run(frames, open_segmenter("street-tiny", every=4)))
        assert [frame.index for frame, _ in shown] == list(range(13))
        assert [maps.network for _, maps in shown] == [index % 4 == 0 for index in range(13)]
        right[run] = np.mean([(maps.label == frame.label).mean() for frame, maps in shown if not maps.network])
    assert right[segment_file] > right[segment] + 0.003


def test_a_frame_beside_a_call_has_nearly_the_maps_of_the_call() -> None:
    """On a still picture both sides agree, so that the mean is what each of them says."""
    image = drive(1)[0].image
    still = [Frame(image, index, index / 25) for index in range(4)]
    shown = [maps for _, maps in segment_file(still, open_segmenter("street-tiny", every=3))]
    assert shown[1].probs is not None and shown[0].probs is not None and not shown[1].network
    assert np.abs(shown[1].probs - shown[0].probs).max() < 0.01
    assert (shown[1].label == shown[0].label).mean() > 0.99
    assert np.abs(shown[1].entropy.astype(int) - shown[0].entropy).max() <= 3


def test_no_map_comes_from_beyond_a_cut_and_few_frames_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames before a cut keep the maps of one side, and so do those at the end."""
    monkeypatch.setattr("steadyseg.app.both_ways.MOST", 3)
    second = [replace(frame, index=frame.index + 3) for frame in drive(2, seed=9)]
    for frames in (drive(3) + second, drive(6)):
        one, both = (
            [maps for _, maps in run(frames, open_segmenter("street-tiny", every=30))]
            for run in (segment, segment_file)
        )
        assert len(both) == len(frames) and [maps.network for maps in both] == [maps.network for maps in one]
        for maps, other in zip(one, both, strict=True):
            np.testing.assert_array_equal(maps.label, other.label)


@pytest.mark.parametrize("every", [1, "live"])
def test_a_network_on_every_frame_has_nothing_to_look_back_at(every: object) -> None:
    segmenter = open_segmenter("street-tiny", every=every)  # type: ignore[arg-type]
    assert len(list(segment_file(drive(3), segmenter))) == 3 and not segmenter.keep_probs
    segmenter.wait()
