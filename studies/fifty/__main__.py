"""What 50 labels give a network of another library: promised against met, on streets that fitted nothing.

    OMP_NUM_THREADS=1 python -m steadyseg.studies.fifty train FOLDER        # 5 minutes of one thread
    OMP_NUM_THREADS=1 python -m steadyseg.studies.fifty pictures FOLDER
    OMP_NUM_THREADS=1 python -m steadyseg.studies.fifty measure FOLDER RECORD.json

Torchvision's LR-ASPP is trained by a plain loop on 40 streets, exported by torch, and goes through the commands `wrap`
and `calibrate`. The three draws of 50 pictures come from 600 pictures of 50 streets. The test pictures come from 200
other streets, one from each.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from steadyseg.app.cli import main as steadyseg
from steadyseg.app.open_model import open_segmenter
from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.conformal import ClassRisk, Coverage
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.stretches import Stretches, count_stretch, intervals
from steadyseg.core.frame import Frame
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import cpu_name
from steadyseg.export.file.onnx_file import read_onnx
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.moving_stills import MEASURED_FRAMES, moving_stills
from steadyseg.seg.evaluate import predict, probs_at
from steadyseg.seg.street.drive import LOOKS, StreetSet
from steadyseg.studies.harness.study import origin, write_record

HEIGHT, WIDTH = 192, 256
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TRAINED, STEPS, BATCH, RATE = 480, 320, 8, 3e-3
DRAWS, LABELS, TESTED = (1, 2, 3), 50, 200
COMMON, RARE, RISK = "Car", "Fence", 0.1


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
    """Runs the commands, then all files over the same frames; writes the record."""
    commands, networks = list[str](), {"before": Tested(folder / "mine.onnx")}

    def run(*words: object) -> None:
        commands.append(" ".join(["steadyseg", *map(str, words)]).replace(f"{folder}/", ""))
        assert steadyseg([*map(str, words), "--overwrite"]) == 0

    source, motion = folder / "other.onnx", ("--classes", "camvid", "--motion", "off")
    run("wrap", source, "-o", folder / "mine.onnx", "--mean", *MEAN, "--std", *STD, *motion)
    for seed in DRAWS:
        fitted, own = folder / f"calibrated{seed}.onnx", folder / f"own{seed}"
        run("calibrate", folder / "mine.onnx", "--data", own, "-o", fitted, "--risk-class", RARE, "--risk", RISK)
        networks[f"draw {seed}"] = Tested(fitted, own)
    for frame in moving_stills(open_split(folder / "far", "test")):
        for one in networks.values():
            one.step(frame)
    about = {"what": (__doc__ or "").partition("\n")[0], **origin(), "processor": f"1 thread of {cpu_name()}"}
    results = {name: one.result() for name, one in networks.items()}
    write_record(record, {**about, "commands": commands, "results": results})


class Tested:
    """A file of `wrap` or `calibrate`, and what its test frames gave."""

    def __init__(self, path: Path, own: Path | None = None) -> None:
        """`own`: the data that it was fitted on, to bound the misses of the second class as `calibrate` does."""
        self.path, self.own, self.fit = path, own, dict[str, Any]()
        self.counts, self.pixels = list[dict[str, list[str]]](), list[int]()
        self.values: dict[str, list[tuple[float, float]]] = {}
        self.segmenter: Segmenter | None = None

    def open(self) -> Segmenter:
        segmenter = open_segmenter(str(self.path), keep_probs=True, precision="fp32")
        if self.own:
            ((_, fit),) = read_onnx(self.path).meta.record().calibration.items()
            risk = ClassRisk(CAMVID.names.index(COMMON), CAMVID.void_id)
            for probs, label in predict(moving_stills(open_split(self.own, "val")), segmenter):
                risk.update(probs[0], label[0])
            self.fit = fit | {"class_risk": [risk.control(RISK, COMMON, MEASURED_FRAMES), fit["class_risk"]]}
            segmenter.reset()
        return segmenter

    def step(self, frame: Frame) -> None:
        self.segmenter = self.segmenter or self.open()
        maps = self.segmenter.step(frame)
        if frame.label is None:
            return
        probs, label = probs_at(frame.label, maps), torch.from_numpy(frame.label)[None].long()
        one = StreamingMetrics(len(CAMVID), CAMVID.void_id)
        one.update(probs, label)
        self.counts.append(count_stretch(one))
        self.pixels.append(one.valid_samples)
        for kind in ("lac", "aps") if self.fit else ():
            coverage = Coverage(kind, self.fit["conformal"][kind], CAMVID.void_id)
            coverage.update(probs[0], label[0])
            found = coverage.result()
            self.add(kind, found["coverage"], one.valid_samples)
            self.add(f"{kind} set size", found["set_size"], one.valid_samples)
        for control in self.fit.get("class_risk", ()):
            risk = ClassRisk(CAMVID.names.index(control["class"]), CAMVID.void_id)
            risk.update(probs[0], label[0])
            found = risk.at(control["threshold"])
            self.add(f"missed {control['class']}", found["risk"] or 0.0, found["images"])

    def add(self, name: str, value: float, weight: float) -> None:
        self.values.setdefault(name, []).append((value, weight))

    def result(self) -> dict[str, Any]:
        """The fit, and metrics with 95 % bootstrap intervals over pictures: (value, lower, upper)."""
        stretches, each = Stretches.read(self.counts), MEASURED_FRAMES
        pictures = len(self.counts) // each

        def figures(times: Tensor) -> dict[str, Tensor]:
            times = times.repeat_interleave(each, 1)  # the frames of a picture are drawn together
            found = stretches.figures(times)
            for name, pairs in self.values.items():
                values, weights = torch.tensor(pairs).double().unbind(1)
                found[name] = times @ (values * weights) / (times @ weights)
            return found

        result: dict[str, Any] = {"pictures": pictures, "fit": self.fit, **intervals(pictures, figures)}
        for kind in ("lac", "aps") if self.fit else ():
            shares = [value for value, _ in self.values[kind]]
            result[f"{kind}: worst 5 % of the frames"] = float(np.percentile(shares, 5))
        return result


if __name__ == "__main__":
    work: dict[str, Callable[..., None]] = {"train": train, "pictures": pictures, "measure": measure}
    work[sys.argv[1]](*map(Path, sys.argv[2:]))
