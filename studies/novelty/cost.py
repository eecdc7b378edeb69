"""Cost of novelty for a frame: the product's step with and without it, in turn, in one process.

    python -m steadyseg.studies.novelty.cost camvid-unet-s camvid-realtime
    ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 python -m steadyseg.studies.novelty.cost camvid-unet-s

The networks must carry their statistics. Run it on an idle machine: the rows are written
into docs/studies/novelty/record.json under the processor's name.
"""

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.app.open_model import open_segmenter
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.export.run.networks import cpu_has_bf16
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street
from steadyseg.studies.harness.networks import name_of
from steadyseg.studies.harness.study import PAGES, origin, read_record_file, write_record

RECORD = PAGES / "novelty" / "record.json"
ROUNDS, WARM_UP = 60, 8
METHOD = MethodOptions(mode="vq-dnn", motion=False)


def without_statistics(model: str, folder: Path) -> str:
    """The network of a checkpoint without its novelty statistics."""
    opened = read_segmenter(model)
    path = folder / f"{name_of(model)}.safetensors"
    opened.with_record(dataclasses.replace(opened.meta, novelty={})).save(path)
    return str(path)


def measure(model: str, frames: list[Frame]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        ways = {"without": open_segmenter(without_statistics(model, Path(folder)), METHOD)}
        ways["with"] = open_segmenter(model, METHOD)
        times = time_in_turn(ways, frames)
    medians = {name: float(np.median(seconds[WARM_UP:])) for name, seconds in times.items()}
    ratios = np.array(times["with"][WARM_UP:]) / np.array(times["without"][WARM_UP:])
    return {f"{name}_ms": 1000 * seconds for name, seconds in medians.items()} | {
        "share": medians["with"] / medians["without"] - 1,
        "share_quartiles": [float(one) - 1 for one in np.quantile(ratios, (0.25, 0.75))],
    }


def time_in_turn(ways: dict[str, Segmenter], frames: list[Frame]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + WARM_UP):
        for name in list(ways) if number % 2 else list(ways)[::-1]:
            frame = dataclasses.replace(frames[number % len(frames)], index=number, time_s=number / 15)
            started = time.perf_counter()
            ways[name].step(frame)
            times[name].append(time.perf_counter() - started)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    given = parser.parse_args()
    street = Street(seed=5)
    frames = [Frame(street.frame(number).image, number, number / 15) for number in range(12)]
    found = {name_of(model): measure(model, frames) for model in given.models}
    record = read_record_file(RECORD)
    processor = "AVX-512 with bf16" if cpu_has_bf16() else "AVX2"
    record.setdefault("cost", {})[processor] = {**origin(), "models": found}
    write_record(RECORD, record)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
