"""What 50 labels give a network of another library: promised and measured figures, on streets that no fit has seen.

    OMP_NUM_THREADS=1 python -m steadyseg.studies.fifty train FOLDER        # 5 minutes of one thread
    OMP_NUM_THREADS=1 python -m steadyseg.studies.fifty pictures FOLDER
    OMP_NUM_THREADS=1 python -m steadyseg.studies.fifty measure FOLDER RECORD.json

Torchvision's LR-ASPP is trained by a plain loop on 40 streets, exported by torch, and goes through the commands `wrap`
and `calibrate`. The three draws of 50 pictures come from 600 pictures of 50 streets. The test pictures come from 200
other streets, one from each.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.app.cli import main as steadyseg
from steadyseg.app.open_model import open_segmenter
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import CheckFailed
from steadyseg.core.evaluation.stretches import Stretches, count_stretch, intervals
from steadyseg.core.segmenter import segment
from steadyseg.core.system.machine import cpu_name
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.seg.calibrate import ConformalCheck
from steadyseg.seg.data.camvid import ImageFolderSplit, open_split
from steadyseg.seg.data.moving_stills import CLIP_FRAMES, moving_stills
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.seg.street.drive import LOOKS, StreetSet
from steadyseg.studies.harness.study import exit_code, origin, write_record

HEIGHT, WIDTH = 192, 256
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TRAINED, STEPS, BATCH, RATE = 480, 320, 8, 3e-3
DRAWS, LABELS, TESTED = (1, 2, 3), 50, 200
CONTROLLED, RISK = ("Car", "Fence"), 0.1
"""A common and a rare class; the share of their pixels that may be missed."""
KINDS = ("lac", "aps")


def train(folder: Path) -> None:
    """Trains on 480 pictures of 40 streets, each flipped or not, and writes other.onnx."""
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large

    torch.manual_seed(0)
    torch.set_num_threads(1)
    street = StreetSet(TRAINED, HEIGHT, WIDTH, first_seed=1000)
    images, labels = map(np.stack, zip(*(street[index] for index in range(len(street))), strict=True))
    network = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=len(CAMVID))
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 0.1  # torchvision's 0.01 is for long trainings
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS)
    loss_of = nn.CrossEntropyLoss(ignore_index=CAMVID.void_id)
    mean, std = (torch.tensor(values)[:, None, None] for values in (MEAN, STD))
    dice, started = np.random.default_rng(0), time.process_time()
    for step in range(STEPS):
        chosen = dice.integers(len(street), size=BATCH)
        pixels = torch.from_numpy(images[chosen]).permute(0, 3, 1, 2) / 255
        truth = torch.from_numpy(labels[chosen]).long()
        if dice.random() < 0.5:
            pixels, truth = pixels.flip(3), truth.flip(2)
        loss = loss_of(network((pixels - mean) / std)["out"], truth)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 50 == 0:
            print(step, f"{float(loss.detach()):.3f}", f"{time.process_time() - started:.0f} s", flush=True)
    print(f"{time.process_time() - started:.0f} s of processor time")
    network.eval()
    torch.onnx.export(network, (torch.zeros(1, 3, HEIGHT, WIDTH),), str(folder / "other.onnx"))


def pictures(folder: Path) -> None:
    """Writes the data folders own1, own2 and own3 of 50 labelled pictures in val, and `far` with the test pictures."""
    pool = StreetSet(600, HEIGHT, WIDTH, first_seed=20000)
    for seed in DRAWS:
        save(pool, random.Random(seed).sample(range(len(pool)), LABELS), folder / f"own{seed}", "val")
    far = StreetSet(LOOKS * TESTED, HEIGHT, WIDTH, first_seed=30000)
    save(far, list(range(0, len(far), LOOKS)), folder / "far", "test")


def save(street: StreetSet, places: list[int], folder: Path, split: str) -> None:
    for name in (split, f"{split}annot"):
        (folder / name).mkdir(parents=True)
    for place in sorted(places):
        image, label = street[place]
        cv2.imwrite(str(folder / split / f"{place:04d}.png"), image[..., ::-1])
        cv2.imwrite(str(folder / f"{split}annot" / f"{place:04d}.png"), label)


def measure(folder: Path, record: Path) -> None:
    """Runs the commands, runs all files over the same frames, and writes the record."""
    commands = list[str]()

    def run(*words: object) -> None:
        commands.append(" ".join(["steadyseg", *map(str, words)]).replace(f"{folder}/", ""))
        if code := steadyseg([*map(str, words), "--overwrite"]):
            raise CheckFailed(f"{words[0]} ended with exit code {code}")

    mine, motion = folder / "mine.onnx", ("--classes", "camvid", "--motion", "off")
    run("wrap", folder / "other.onnx", "-o", mine, "--mean", *MEAN, "--std", *STD, *motion)
    split = open_split(folder / "far", "test")
    results = {"before": tested(mine, split, [])}
    for seed in DRAWS:
        files = [folder / f"{kind.lower()}{seed}.onnx" for kind in CONTROLLED]
        for kind, file in zip(CONTROLLED, files, strict=True):
            own = ("--data", folder / f"own{seed}", "--risk-class", kind, "--risk", RISK)
            run("calibrate", mine, *own, "-o", file)
        results[f"draw {seed}"] = tested(files[0], split, [fit_in(file) for file in files])
    about = {"what": (__doc__ or "").partition("\n")[0], **origin(), "processor": cpu_name()}
    write_record(record, {**about, "commands": commands, "results": results})


def fit_in(file: Path) -> dict[str, Any]:
    """The one calibration that a file of `calibrate` holds."""
    (fit,) = read_onnx(file).meta.record().calibration.values()
    return fit


def tested(file: Path, split: ImageFolderSplit, fits: list[dict[str, Any]]) -> dict[str, Any]:
    """The fits of a file, and metrics with 95 % bootstrap intervals over pictures: (value, lower, upper). The fits
    differ in their controlled class alone."""
    segmenter = open_segmenter(str(file), keep_probs=True, precision="fp32")
    frames = segment(moving_stills(split), segmenter)
    counts, values = list[dict[str, list[str]]](), dict[str, list[tuple[float, float]]]()
    for _ in split.examples:
        metrics, checks = FrameMetrics.of(CAMVID), [ConformalCheck(fit, CAMVID) for fit in fits]
        for frame, maps in islice(frames, CLIP_FRAMES):
            metrics.update(frame, maps)
            for check in checks:
                check.update(frame, maps, "")
        counts.append(count_stretch(metrics.metrics))
        for name, *pair in weighted([check.result() for check in checks], metrics.metrics.valid_samples):
            values.setdefault(name, []).append((pair[0], pair[1]))
    stretches = Stretches.read(counts)

    def figures(times: Tensor) -> dict[str, Tensor]:
        means = {name: torch.tensor(pairs).double().unbind(1) for name, pairs in values.items()}
        return stretches.figures(times) | {
            name: times @ (each * weights) / (times @ weights) for name, (each, weights) in means.items()
        }

    worst = {f"{name}: worst 5 % of the pictures": percentile(values[name], 5) for name in KINDS if fits}
    return {"pictures": len(counts), "fits": fits, **intervals(len(counts), figures), **worst}


def weighted(checked: list[dict[str, Any]], pixels: int) -> Iterator[tuple[str, float, float]]:
    """Yields name, value and weight of each figure of a picture: coverage by its pixels, misses by its frames that
    show the class."""
    for kind in KINDS if checked else ():
        yield kind, checked[0][kind]["coverage"], pixels
        yield f"{kind} set size", checked[0][kind]["set_size"], pixels
    for risk in (one["class_risk"] for one in checked):
        yield f"missed {risk['class']}", risk["risk"] or 0.0, risk["images"]


def percentile(pairs: list[tuple[float, float]], percent: float) -> float:
    return float(np.percentile([value for value, _ in pairs], percent))


def main() -> int:
    work: dict[str, Callable[..., None]] = {"train": train, "pictures": pictures, "measure": measure}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=work)
    parser.add_argument("folder", type=Path)
    parser.add_argument("record", type=Path, nargs="?", help="of measure: the JSON file to write")
    given = parser.parse_args()
    paths = [given.folder, *([given.record] if given.record else [])]
    return exit_code("fifty", lambda: work[given.work](*paths))


if __name__ == "__main__":
    sys.exit(main())
