"""Trainings on more and more labelled frames of CamVid's train, chosen in three ways; those that are done are kept.

    python -m steadyseg.studies.labelling.trainings ../shared/data/camvid --runs runs/pick

Each seed begins with 12 labelled frames, drawn at random. Three times, 12 more are added: random ones, frames evenly
spaced in time, or those chosen by `steadyseg pick` with the network of the round before. Every training begins with the
same weights, a network trained on the procedural street, and has the same number of steps; about five minutes of one
core each. `--document` copies the figures that are there to docs/studies/labelling/pick.json.
"""

import argparse
import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.app.labelling.candidates import Candidate, FrameMeter, choose
from steadyseg.app.open_model import open_checkpoint
from steadyseg.core.classes import CAMVID
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.preprocess import Normalize, network_size
from steadyseg.core.system.files import write_atomic
from steadyseg.core.training.parts import Run
from steadyseg.core.training.run import choose_precision, train
from steadyseg.core.training.run_folder import MODEL_NAME
from steadyseg.seg.data.augment import to_tensors
from steadyseg.seg.data.camvid import ImageFolderSplit, open_split
from steadyseg.seg.data.held_out import recording_of
from steadyseg.seg.evaluate import enlarge
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.presets import PRESETS
from steadyseg.seg.train import prepare_segmentation
from steadyseg.studies.harness.bundle import round_figures
from steadyseg.studies.harness.study import PAGES, digest_of_file, origin

START, STEP, ROUNDS = 12, 12, 3
WAYS = ("random", "uniform", "pick")
SEEDS = (0, 1)
PRESET = "mobile"
STEPS, BATCH, SIZE = 1000, 4, 180
CROP_HEIGHT, CROP_WIDTH = 120, 160
STREET = "street"
"""Name of the run whose weights every training begins with: it has seen no photograph."""
RECORD = PAGES / "labelling" / "pick.json"
FIGURES, LABELLED = "figures.json", "labelled.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="CamVid folder")
    parser.add_argument("--runs", type=Path, default=Path("runs/pick"), help="folder of the trainings")
    parser.add_argument("--document", action="store_true", help="only write the record")
    given = parser.parse_args()
    if given.document:
        write_atomic(RECORD, (json.dumps(collect(given.runs), indent=1, sort_keys=True) + "\n").encode())
        return
    torch.set_num_threads(1)
    train_street(given.runs)
    for seed in SEEDS:
        run_seed(given.data, given.runs / f"seed{seed}", seed)


def collect(runs: Path) -> dict[str, Any]:
    """Returns the figures of all trainings that are done, by seed and name."""
    return {
        folder.name: {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob(f"*/{FIGURES}"))}
        for folder in sorted(runs.glob("seed*"))
    }


def run_seed(data: Path, runs: Path, seed: int) -> None:
    """Trains and measures all rounds of one seed, the ways side by side."""
    split = open_split(data, "train")
    names = [example.name for example in split.examples]
    start = np.random.default_rng(seed).choice(names, START, replace=False).tolist()
    chosen = {way: list(start) for way in WAYS}
    train_on(data, runs / "start", names, start, seed)
    before = dict.fromkeys(WAYS, runs / "start")
    for round_, way in itertools.product(range(1, ROUNDS + 1), WAYS):
        folder = runs / f"{way}-{START + round_ * STEP}"
        if (folder / LABELLED).exists():
            chosen[way] = (folder / LABELLED).read_text().split()
        else:
            chosen[way] += next_frames(way, split, chosen[way], before[way] / MODEL_NAME, 100 * seed + round_)
        train_on(data, folder, names, chosen[way], seed)
        before[way] = folder


def next_frames(way: str, split: ImageFolderSplit, labelled: list[str], model: Path, seed: int) -> list[str]:
    """Returns `STEP` further names."""
    rest = [example.name for example in split.examples if example.name not in set(labelled)]
    if way == "random":
        return [str(name) for name in np.random.default_rng(seed).choice(rest, STEP, replace=False)]
    if way == "uniform":
        return [rest[place] for place in np.linspace(0, len(rest) - 1, STEP).round().astype(int)]
    return picked(split, labelled, model)


def picked(split: ImageFolderSplit, labelled: list[str], model: Path) -> list[str]:
    """Returns the frames that `steadyseg pick` chooses, with the labelled ones known to it."""
    meter, known, candidates = FrameMeter(open_checkpoint(model)), list[tuple[np.ndarray, ...]](), list[Candidate]()
    recordings = list(dict.fromkeys(recording_of(one.name) for one in split.examples))
    for example in split.examples:
        features, criteria, _ = meter.measure(split[example.index][0], example.index)
        if example.name in labelled:
            known.append(features)
        else:
            number = recordings.index(recording_of(example.name))
            candidates.append(Candidate(number, example.index, float(example.index), features, criteria))
    return [split.examples[candidates[one.place].number].name for one in choose(candidates, STEP, known)]


def at_half_size(base: SegTrainConfig, seed: int) -> SegTrainConfig:
    """Returns a preset for half of CamVid's size, on one core, without the parts that need its long training."""
    return replace(
        base,
        size=SIZE,
        hold_out=Path("none"),
        loaders=0,
        full_image_epochs=0,
        unzoomed_epochs=0,
        augment=replace(base.augment, crop_height=CROP_HEIGHT, crop_width=CROP_WIDTH, paste=0.0),
        loop=replace(base.loop, batch_size=BATCH, evaluate_every=0, threads=1, seed=seed),
    )


def config_of(data: Path, runs: Path, left_out: Path, images: int, seed: int) -> SegTrainConfig:
    """The recipe of every training: `STEPS` steps from the weights of the street."""
    base = at_half_size(PRESETS[PRESET], seed)
    loop = replace(base.loop, epochs=STEPS // (images // BATCH), average_decay=0.99)
    return replace(
        base,
        data=data,
        exclude=left_out,
        init=str(runs / STREET / MODEL_NAME),
        allow_missing_classes=True,
        loop=loop,
    )


def train_street(runs: Path) -> None:
    """Trains the network that all trainings begin with, unless that is done."""
    if not (runs / STREET / MODEL_NAME).exists():
        shutil.rmtree(runs / STREET, ignore_errors=True)  # of an interruption
        run_training(at_half_size(PRESETS[f"{PRESET}-street"], seed=0), runs / STREET)


def run_training(config: SegTrainConfig, folder: Path) -> None:
    """Trains from the first step to the last in a new run folder."""
    run = Run(folder, torch.device("cpu"))
    config = choose_precision(config, run)
    for _ in train(prepare_segmentation(config, run), config, run):
        pass


def train_on(data: Path, folder: Path, names: list[str], labelled: list[str], seed: int) -> None:
    """Trains on the labelled frames and measures the network on test, unless that is done."""
    if (folder / FIGURES).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LABELLED).write_text("\n".join(labelled) + "\n")
    left_out = folder / "left-out.txt"
    left_out.write_text("\n".join(sorted(set(names) - set(labelled))) + "\n")
    shutil.rmtree(folder / "run", ignore_errors=True)  # of an interruption
    run_training(config_of(data, folder.parent.parent, left_out, len(labelled), seed), folder / "run")
    (folder / "run" / MODEL_NAME).replace(folder / MODEL_NAME)
    figures = measure(open_split(data, "test"), folder / MODEL_NAME)
    record = {"model": digest_of_file(folder / MODEL_NAME), "labelled": len(labelled), **origin(), **figures}
    write_atomic(folder / FIGURES, (json.dumps(round_figures(record), indent=1) + "\n").encode())
    print(folder, record["miou"], flush=True)


@torch.inference_mode()
def measure(split: ImageFolderSplit, path: Path) -> dict[str, Any]:
    """Accuracy, mIoU and IoU by class of single passes at the network's size."""
    model = open_checkpoint(path)
    network, normalize = model.network().eval(), Normalize(model.meta.mean, model.meta.std)
    set_dropout_active(network, False)
    metrics = StreamingMetrics(len(CAMVID), CAMVID.void)
    for number in range(len(split)):
        image, label = split[number]
        picture, mask = to_tensors(image, label, *network_size(label.shape[0], label.shape[1], SIZE))
        probs = torch.softmax(enlarge(network(normalize(picture[None].float())), mask.shape), 1)
        metrics.update(probs, mask[None])
    result = metrics.result()
    return {"accuracy": result["accuracy"], "miou": result["miou"], "iou": result["iou"]}


if __name__ == "__main__":
    main()
