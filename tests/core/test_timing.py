"""Times per stage."""

from collections import deque

from steadyseg.core.segmenter import MAX_TIMES, StageClock


def test_percentiles_are_those_of_the_samples_and_memory_is_bounded() -> None:
    clock = StageClock()
    clock.samples["decode"] = deque()  # no sample, no row
    for value in range(MAX_TIMES + 101):
        clock.add("network", float(value))
    assert len(clock.samples["network"]) == MAX_TIMES
    assert clock.summary() == {"network": {"latency_p50_ms": 5100.5, "latency_p95_ms": 9600.05}}
