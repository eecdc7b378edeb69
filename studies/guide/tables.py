"""The tables of docs/records/guide, from its record."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from steadyseg.studies.guide.measure import CLASSES, LEVELS, PAGE, WANTED, level_of
from steadyseg.studies.guide.roads import LEFT_OUT
from steadyseg.studies.guide.roads import THRESHOLDS as THRESHOLDS_OF_ROADS
from steadyseg.studies.harness.study import Cache
from steadyseg.studies.harness.tables import Tables, bind, table

THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
"""Those of the page's slider that differ visibly."""


def tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    record = {name: part["rows"] for name, part in Cache(PAGE / "record.json").record.items()}
    by_road = {name: part["rows"] for name, part in Cache(PAGE / "roads.json").record.items()}
    return {
        **bind(record, {"wanted": wanted_table, "thresholds": thresholds_table}),
        **bind(by_road, {"roads": roads_table}),
    }


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def threshold_for(wanted: float, accuracy: list[float]) -> int | None:
    """The lowest level from which on the kept pixels are as accurate as wanted; None if no level is."""
    enough = np.array(accuracy[: LEVELS - 1]) >= wanted
    return int(np.argmax(enough)) if enough.any() else None


def wanted_table(record: dict[str, Any]) -> str:
    """The threshold for a wanted accuracy, and what remains."""

    def lines() -> Iterable[list[str]]:
        for name, found in record.items():
            val, test = found["val"], found["test"]
            for wanted in WANTED:
                level, frame = threshold_for(wanted, val["accuracy"]), frame_threshold(wanted, val)
                pixels = (
                    ["-"] * 4
                    if level is None
                    else [
                        f"{level / (LEVELS - 1):.2f}",
                        percent(val["kept"][level]),
                        percent(test["accuracy"][level]),
                        percent(test["kept"][level]),
                    ]
                )
                yield [name, percent(wanted), *pixels, *frame_cells(frame, test)]

    head = [
        "network",
        "right, wanted, %",
        "threshold of a pixel",
        "pixels that remain, %",
        "test: right, %",
        "remain, %",
    ]
    return table([*head, "threshold of a frame", "frames that remain, %", "test: right, %", "remain, %"], lines())


def frame_threshold(wanted: float, found: dict[str, Any]) -> tuple[float, float] | None:
    """(mean confidence, share of frames at or above it) where these frames are as accurate as wanted. The confidence is
    0 where all frames together are; None where no frames are."""
    order = np.argsort(found["frame_confidence"])[::-1]
    means = np.array(found["frame_accuracy"])[order].cumsum() / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(means >= wanted)
    if not len(enough):
        return None
    last = int(enough[-1])
    if last + 1 == len(order):
        return 0.0, 1.0
    return float(found["frame_confidence"][order[last]]), (last + 1) / len(order)


def frame_cells(found: tuple[float, float] | None, test: dict[str, Any]) -> list[str]:
    if found is None:
        return ["-"] * 4
    kept = np.array(test["frame_confidence"]) >= found[0]
    right = percent(float(np.array(test["frame_accuracy"])[kept].mean())) if kept.any() else "-"
    return [f"{found[0]:.3f}", percent(found[1]), right, percent(float(kept.mean()))]


def thresholds_table(record: dict[str, Any]) -> str:
    """What a threshold of the page's slider keeps and misses."""
    lines = []
    for name, found in record.items():
        for threshold in THRESHOLDS:
            level, val = level_of(threshold), found["val"]
            missed = (percent(val["missed"][one][level]) for one in CLASSES)
            lines.append(
                [name, f"{threshold:g}", percent(val["kept"][level]), percent(val["accuracy"][level]), *missed]
            )
    head = ["network", "threshold", "pixels that remain, %", "right among them, %"]
    return table([*head, *(f"{one}: missed, %" for one in CLASSES)], lines)


def roads_table(record: dict[str, Any]) -> str:
    """What remains at the threshold of the README, and what leaving out the least sure pixels buys."""
    place, shares = THRESHOLDS_OF_ROADS.index(0.88), [LEFT_OUT.index(share) for share in (0.1, 0.2, 0.3)]
    head = ["network", "pictures of", "pictures", "right, %", "at 0.88 remain, %", "right among them, %"]
    return table(
        [*head, *(f"without the least sure {100 * LEFT_OUT[share]:.0f} %: right, %" for share in shares)],
        (
            [
                *(name, pictures, str(one["pictures"])),
                *(percent(value) for value in (one["without"][0], one["kept"][place], one["right"][place])),
                *(percent(one["without"][share]) for share in shares),
            ]
            for name, found in record.items()
            for pictures, one in found.items()
        ),
    )
