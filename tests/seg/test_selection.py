"""The choice of frames: what is worth a label, unlike what is known, and not the neighbour in time."""

import numpy as np
import pytest

from steadyseg.seg.selection import GAPS, choose_frames, mean_ranks, standardise


def test_each_choice_is_the_best_of_all_that_are_left() -> None:
    generator = np.random.default_rng(0)
    features, scores = generator.normal(size=(60, 5)), generator.uniform(0.1, 1, 60)
    labelled = generator.normal(size=(4, 5))
    recordings, times = np.repeat([0, 1], 30), np.tile(np.arange(30.0), 2)
    chosen = choose_frames(features, scores, recordings, times, 8, labelled)
    gap, centres, taken = 2 * 29 / (GAPS * 8), list(labelled), list[int]()
    for one in chosen:
        free = [
            n
            for n in range(60)
            if all(recordings[n] != recordings[t] or abs(times[n] - times[t]) >= gap for t in taken) and n not in taken
        ]
        distance = {n: min(np.linalg.norm(features[n] - centre) for centre in centres) for n in free}
        assert one.place == max(free, key=lambda n: scores[n] * distance[n])
        assert one.distance == pytest.approx(distance[one.place])
        taken.append(one.place)
        centres.append(features[one.place])
    assert len(taken) == 8


def test_without_labels_the_first_choice_has_the_highest_score_and_short_videos_give_all_they_have() -> None:
    scores = np.array([0.2, 0.9, 0.3])
    chosen = choose_frames(np.eye(3), scores, np.arange(3), np.zeros(3), 5, np.zeros((0, 3)))
    assert chosen[0].place == 1 and sorted(one.place for one in chosen) == [0, 1, 2]


def test_ranks_and_scales_do_not_depend_on_units() -> None:
    generator = np.random.default_rng(1)
    novelty, error = generator.uniform(size=50), generator.uniform(size=50)
    assert np.array_equal(mean_ranks(np.stack([novelty, error], 1)), mean_ranks(np.stack([novelty**3 * 9, error], 1)))
    one, other = generator.normal(size=(50, 8)) * 1e4, generator.normal(size=(50, 2))
    features = standardise([np.hstack([one, np.full((50, 2), 7.0)]), other])  # two channels are constant
    squared = ((features[:, None] - features) ** 2).sum(2)
    assert squared.mean() == pytest.approx((8 / 10 + 1) / 2)
