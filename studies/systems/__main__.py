"""Measures the systems of the papers that are no network of the results page.

    python -m steadyseg.studies.systems ../shared/data [--only lag occupancy ...]

Writes docs/studies/systems/record.json; parts that are there already are kept.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import (
    PAGES,
    Cache,
    data_digest,
    digest_of_file,
    digest_of_weights,
    exit_code,
    origin,
)
from steadyseg.studies.systems.depth import measure_depth
from steadyseg.studies.systems.memory import measure_memory
from steadyseg.studies.systems.occupancy import measure_occupancy
from steadyseg.studies.systems.stream import measure_stream

STREAM_NETWORK = "camvid-unet-s"
SEGNET = Path("runs/segnet/model.safetensors")
"""steadyseg train seg --network segnet --data ../shared/data/camvid --size 180 --epochs 40 --run runs/segnet --config
segnet_dropout=0.2 crop_height=144 crop_width=192"""


Part = tuple[Callable[[], str], Callable[[], dict[str, Any]]]
"""Functions that return the digest of what a part rests on, and its figures."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with camvid/ and occupancy/")
    parser.add_argument("--only", nargs="*", help="parts to measure, by name")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    given = parser.parse_args()
    return exit_code("systems", lambda: work(given.data, given.only, given.fresh))


def work(data: Path, only: list[str] | None, fresh: bool) -> None:
    """Measures what is missing and writes the page. Raises InputError for an unknown part and for missing data."""
    cache = Cache(PAGES / "systems" / "record.json")
    parts: dict[str, Part] = {
        "occupancy": (lambda: folder_digest(data / "occupancy"), lambda: measure_occupancy(data / "occupancy")),
        "memory": (lambda: "street", measure_memory),
        "depth": (lambda: "street", lambda: measure_depth(PAGES / "systems" / "depth.jpg")),
        "lag": (
            lambda: rests_on(STREAM_NETWORK, data_digest(data / "camvid")),
            lambda: measure_stream(data, STREAM_NETWORK),
        ),
    }
    if SEGNET.is_file():
        parts["segnet"] = (lambda: digest_of_weights(SEGNET), lambda: measure_stream(data, str(SEGNET), lags=(0,)))
    if unknown := sorted(set(only or ()) - parts.keys()):
        raise InputError(f"--only {unknown[0]}: no such part here; there are {', '.join(parts)}")
    for name, (digest_now, measure) in parts.items():
        if name not in (only or parts):
            continue
        digest = digest_now()
        if fresh or cache.get(name, digest) is None:
            cache.put(name, digest, measure(), origin())
            print(f"{name}: done")
    write_page("systems")


def folder_digest(folder: Path) -> str:
    """Digest of the files of a folder, by name."""
    return "".join(digest_of_file(path)[:4] for path in sorted(folder.glob("*.txt")))


if __name__ == "__main__":
    sys.exit(main())
