"""Measures the systems of the papers that are no network of the results page.

    python -m studies.systems ../shared/data [--only lag occupancy ...]

Writes docs/studies/systems/record.json; parts that are there already are kept.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.harness.networks import rests_on
from studies.harness.pages import write_page
from studies.harness.study import PAGES, Cache, data_digest, digest_of_file, digest_of_weights, origin
from studies.systems.depth import measure_depth
from studies.systems.memory import measure_memory
from studies.systems.occupancy import measure_occupancy
from studies.systems.stream import measure_stream

STREAM_NETWORK = "camvid-unet-s"
SEGNET = Path("runs/segnet/model.safetensors")
"""steadyseg train seg --network segnet --data ../shared/data/camvid --size 180 --epochs 40 --run runs/segnet --config
segnet_dropout=0.2 crop_height=144 crop_width=192"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with camvid/ and occupancy/")
    parser.add_argument("--only", nargs="*", help="parts to measure, by name")
    given = parser.parse_args()
    data, cache = given.data, Cache(PAGES / "systems" / "record.json")
    parts: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        "occupancy": (folder_digest(data / "occupancy"), lambda: measure_occupancy(data / "occupancy")),
        "memory": ("street", measure_memory),
        "depth": ("street", lambda: measure_depth(PAGES / "systems" / "depth.jpg")),
        "lag": (rests_on(STREAM_NETWORK, data_digest(data / "camvid")), lambda: measure_stream(data, STREAM_NETWORK)),
    }
    if SEGNET.is_file():
        parts["segnet"] = (digest_of_weights(SEGNET), lambda: measure_stream(data, str(SEGNET), lags=(0,)))
    for name, (digest, measure) in parts.items():
        if (given.only is None or name in given.only) and cache.get(name, digest) is None:
            cache.put(name, digest, measure(), origin())
            print(f"{name}: done")
    write_page("systems")


def folder_digest(folder: Path) -> str:
    """Digest of the files of a folder, by name."""
    return "".join(digest_of_file(path)[:4] for path in sorted(folder.glob("*.txt")))


if __name__ == "__main__":
    main()
