"""Expected against true accuracy of frames, by data set: the table of who may trust it where.

    python -m steadyseg.studies.familiarity.expected NETWORK ... --data data --roads roads

Each picture is a stream of its own, in mode dnn, by the fastest number format of the machine. Of the data sets of the
fit, the pictures that it did not see are measured: every second picture of val, and CamVid's test stills. The 15
corruptions are none of the fit's changes. Then each data set is left out in turn, with its corrupted pictures: a
new fit on the pictures of all other sets is measured on it. `roads` is made by `steadyseg data roads`.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from steadyseg.app.sources.image_folder import list_images
from steadyseg.app.sources.open_source import open_source
from steadyseg.core.classes import CAMVID
from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, corrupt
from steadyseg.core.errors import InputError
from steadyseg.core.expected import ExpectedAccuracy, layout_cost
from steadyseg.core.familiarity.fit_expected import Seen, left_out_errors
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.pictures import read_upright
from steadyseg.runtime.open_model import open_segmenter
from steadyseg.seg.data.coarse import is_right, void_of
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.street.drive import Street
from steadyseg.studies.harness.networks import digest_of
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.panels import legend_below, new_figure, write_figure
from steadyseg.studies.harness.study import PAGES, exit_code, origin, read_record_file, write_record

RECORD = PAGES / "familiarity" / "expected.json"
CORRUPTED = 6
"""Pictures of a data set that are corrupted, each in 15 ways; the severity goes from 1 to 5 and starts again."""
BINS = 15
NO_STREET = ("photographs without a street", "noise, one colour")
Picture = tuple[np.ndarray, np.ndarray | None]


def data_sets(data: Path, roads: Path) -> dict[str, Callable[[], Iterator[Picture]]]:
    """The pictures by the names of their data sets, with labels where there are any."""
    stills = open_split(data / "camvid", "test", CAMVID)
    india, facades = (open_split(roads / name, "val", CAMVID) for name in ("idd-lite", "labelmefacade"))
    labelled = {
        "CamVid, test stills": lambda: of_split(stills, range(0, len(stills), 2)),
        "India (IDD-Lite, coarse)": lambda: of_split(india, range(1, len(india), 2)),
        "facades (LabelMeFacade, coarse)": lambda: of_split(facades, range(1, len(facades), 2)),
        "drawn streets": drawn,
        "CamVid, 15 corruptions": lambda: corrupted(stills, 0),
        "India, 15 corruptions": lambda: corrupted(india, 1),
        "facades, 15 corruptions": lambda: corrupted(facades, 1),
    }
    foreign = data / "imagenet-sample" / "imagenet-1k-24"
    return labelled | {
        "US city drive": lambda: of_folder(data / "roads" / "driveai" / "images", 3),
        "two motorways": lambda: of_clips(data / "video"),
        "US streets, half of them at night": lambda: of_folder(data / "roads" / "roadscene" / "images", 2),
        "fog": lambda: of_folder(data / "roads" / "dawn-fog" / "images", 2),
        "photographs without a street": lambda: ((read_upright(one), None) for one in list_images(foreign)[1::2]),
        "noise, one colour": made,
    }


def of_split(split: ImageFolderSplit, places: range) -> Iterator[Picture]:
    return (split[place] for place in places)


def of_folder(folder: Path, step: int) -> Iterator[Picture]:
    return ((read_upright(path), None) for path in list_images(folder)[::step])


def of_clips(folder: Path) -> Iterator[Picture]:
    for path in sorted(folder.glob("*.mp4")):
        with open_source(str(path)) as source:
            yield from ((frame.image, None) for frame in source if frame.index % 10 == 0)


def drawn() -> Iterator[Picture]:
    for seed in range(40, 46):
        street = Street(seed)
        yield from ((frame.image, frame.label) for frame in map(street.frame, range(0, 200, 50)))


def corrupted(split: ImageFolderSplit, first: int) -> Iterator[Picture]:
    places = range(first, len(split), max(1, len(split) // CORRUPTED))[:CORRUPTED]
    for number, place in enumerate(places):
        image, label = split[place]
        for kind, name in enumerate(BENCHMARK_CORRUPTIONS):
            yield corrupt(image, name, (number + kind) % 5 + 1, 5, number), label


def made() -> Iterator[Picture]:
    for seed in range(12):
        generator = np.random.default_rng([seed, 99])
        yield generator.integers(0, 256, (360, 480, 3), dtype=np.uint8), None
        yield np.full((360, 480, 3), generator.integers(0, 256, 3), np.uint8), None


def measure(segmenter: Segmenter, name: str, pictures: Iterator[Picture], seen: list[Seen]) -> dict[str, Any]:
    """Figures of a data set; shares in 0..1. What a fit needs of the frames is added to `seen`."""
    rows, verdicts, bins = list[tuple[float, float]](), list[str](), np.zeros((3, BINS))
    costs = np.array(known_of(segmenter).costs)
    for number, (image, label) in enumerate(pictures):
        maps = segmenter.step(Frame(image, number, float(number), discontinuity=True))
        verdicts.append(maps.verdict)
        right = 0.0 if name in NO_STREET else float("nan")
        if label is not None and (kept := label != void_of(label, CAMVID.void_id)).any():
            hits, sure = is_right(maps.label, label)[kept], maps.confidence[kept] / 255
            right, places = float(hits.mean()), np.minimum((sure * BINS).astype(int), BINS - 1)
            bins += [np.bincount(places, weights, BINS) for weights in (np.ones(len(sure)), sure, hits)]
        if not np.isnan(right) and segmenter.score is not None:
            cost = layout_cost(maps.label, costs)
            seen.append(Seen(name, float(maps.confidence.mean()) / 255, segmenter.score, cost, right))
        rows.append((maps.expected_accuracy, right if label is not None else float("nan")))
    expected, true = np.array(rows).T
    found: dict[str, Any] = {
        "frames": len(rows),
        "expected": expected.mean(),
        "expected_p05": np.quantile(expected, 0.05),
        "doubtful": np.mean([one in ("doubtful", "unlike") for one in verdicts]),
        "unlike": np.mean([one == "unlike" for one in verdicts]),
        "points": np.array(rows).round(3).tolist() if not np.isnan(true).any() else [],
    }
    if found["points"]:
        errors, spread = np.abs(expected - true), np.abs(true - true.mean())
        found |= {"accuracy": true.mean(), "error_p50": np.median(errors), "error_p90": np.quantile(errors, 0.9)}
        found |= {"mean_p50": np.median(spread), "mean_p90": np.quantile(spread, 0.9)}
        found |= {"rank": spearmanr(expected, true)[0], "ece": np.abs(bins[1] - bins[2]).sum() / bins[0].sum()}
    return {key: one if isinstance(one, list | int) else round(float(one), 4) for key, one in found.items()}


def known_of(segmenter: Segmenter) -> ExpectedAccuracy:
    """The fit in use; InputError without one."""
    if segmenter.reference is None or segmenter.reference.expected is None:
        raise InputError("the network has no expected accuracy; fit one with steadyseg calibrate --familiarity")
    return segmenter.reference.expected


def left_out(seen: list[Seen], known: ExpectedAccuracy) -> dict[str, dict[str, float]]:
    """Errors on each data set of a fit on the others; a set's corrupted pictures are left out with it."""
    families = [one._replace(group=one.group.split(",")[0].split(" (")[0]) for one in seen]
    errors = left_out_errors(families, known)
    found: dict[str, list[float]] = {}
    rows = {family: iter(values) for family, values in errors.items()}
    for one, family in zip(seen, families, strict=True):
        if family.group in rows:
            found.setdefault(one.group, []).append(next(rows[family.group]))
    return {
        name: {f"error_p{share}": round(float(np.quantile(values, share / 100)), 4) for share in (50, 90)}
        for name, values in found.items()
    }


def draw(record: dict[str, Any]) -> None:
    """The reliability diagram: expected against true accuracy, a point a frame."""
    figure, axes = new_figure(len(record), 5.2, 4.6, sharey=True)
    for axis, (name, found) in zip(axes, record.items(), strict=True):
        for title, one in found["sets"].items():
            if one["points"]:
                axis.plot(*np.array(one["points"]).T, ".", ms=4, alpha=0.6, label=title)
        axis.plot([0, 1], [0, 1], "k--", lw=0.8)
        axis.set(title=name, xlabel="expected share of right pixels", ylabel="true share", xlim=(0, 1), ylim=(0, 1))
    legend_below(figure, axes)
    write_figure(RECORD.parent / "expected.png", figure, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NETWORK")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--roads", type=Path, required=True)
    return exit_code("expected", lambda: run(parser.parse_args()))


def run(given: argparse.Namespace) -> None:
    record = read_record_file(RECORD)
    for model in given.models:
        segmenter, began = open_segmenter(model, MethodOptions(mode="dnn")), time.perf_counter()
        seen, todo = list[Seen](), data_sets(given.data, given.roads)
        sets = {name: measure(segmenter, name, pictures(), seen) for name, pictures in todo.items()}
        for name, errors in left_out(seen, known_of(segmenter)).items():
            sets[name]["left_out"] = errors
        about = {"backend": segmenter.backend, "digest": digest_of(model), "left_out_error": segmenter.error}
        minutes = round((time.perf_counter() - began) / 60, 1)
        record[model] = {**about, **origin(), "minutes": minutes, "sets": sets}
        write_record(RECORD, record)
    draw(record)
    write_page("familiarity")


if __name__ == "__main__":
    raise SystemExit(main())
