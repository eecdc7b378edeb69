"""`steadyseg suspects`: lists labels that are probably wrong, by confident learning, with reasons and pictures."""

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from steadyseg.app.console import Console, figure_table, track
from steadyseg.app.contact_sheet import SHEET_FILE, SHOWN, WIDTH, Cell, colored, strip, write_sheet
from steadyseg.app.evaluation.data import LabelledData
from steadyseg.app.labelling.flags import SuspectsJob
from steadyseg.app.opencv import opencv
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.files import require_new_folder, whole_folder
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.runtime.choose import RunOptions
from steadyseg.runtime.open_model import make_segmenter, open_model, refuse_classifier
from steadyseg.seg.data.label_folder import ImageFolderSplit
from steadyseg.seg.data.regions import Region
from steadyseg.seg.evaluate import enlarge
from steadyseg.seg.label_errors import ConfidentJoint, Suspect, find_suspects

TABLE_FILE = "suspects.csv"
PAIRS = 5
"""Number of pairs of classes shown in the terminal."""
CONTEXT, SMALLEST = 2.0, 96
"""Height of a picture on the sheet: the region's height times `CONTEXT`, and at least `SMALLEST` pixels."""


class LabelCheck:
    """The pictures of a split, the network's probabilities for them, and the confident joint."""

    def __init__(self, split: ImageFolderSplit, segmenter: Segmenter) -> None:
        """`segmenter` must keep its probabilities."""
        self.split, self._segmenter, self.joint = split, segmenter, ConfidentJoint(len(segmenter.classes))

    def probs(self, image: np.ndarray) -> np.ndarray:
        """Returns the probabilities (K, H, W) of an image (H, W, 3)."""
        maps = self._segmenter.step(Frame(image, 0, 0.0, discontinuity=True))
        return enlarge(torch.from_numpy(maps.probs)[None], image.shape[:2])[0].numpy()

    def find(self) -> list[tuple[int, Suspect]]:
        """Returns the suspect regions, each with its picture's index in the split. The network runs over all pictures
        twice, for class thresholds and for regions, so that no probabilities are kept in memory."""
        found = list[tuple[int, Suspect]]()
        for _, probs, label in self._pictures("class thresholds"):
            self.joint.add_to_thresholds(probs, label)
        for number, probs, label in self._pictures("suspect regions"):
            confident = self.joint.confident_classes(probs)
            self.joint.add_to_joint(label, confident)
            found += ((number, one) for one in find_suspects(confident, probs, label))
        return found

    def _pictures(self, task: str) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields index, probabilities and label of every picture."""
        for number in track(range(len(self.split)), task):
            image, label = self.split[number]
            yield number, self.probs(image), label

    def row(self, rank: int, number: int, one: Suspect) -> dict[str, Any]:
        """Returns the row of a suspect in the table."""
        given, suggested = (self.split.classes.names[place] for place in (one.label, one.suggested))
        rows, columns = one.region.rows, one.region.columns
        return {
            "rank": rank,
            "picture": self.split.examples[number].name,
            "left": columns.start,
            "top": rows.start,
            "width": columns.stop - columns.start,
            "height": rows.stop - rows.start,
            "pixels": one.region.pixels,
            "label": given,
            "suggested": suggested,
            "self_confidence": round(one.self_confidence, 4),
            "confidence": round(one.confidence, 4),
            "reason": f"labelled {given} ({one.self_confidence:.1%}), the network gives {suggested} "
            f"{one.confidence:.0%}",
        }

    def draw(self, number: int, region: Region) -> list[np.ndarray]:
        """Draws the surroundings of the region, at 4:3, with its outline: picture, label and prediction."""
        cv2, classes = opencv(), self.split.classes
        image, label = self.split[number]
        predicted = self.probs(image).argmax(0).astype(np.uint8)
        rows, columns = place = surroundings(region, label.shape)
        size = (WIDTH, max(1, round(WIDTH * (rows.stop - rows.start) / (columns.stop - columns.start))))
        mask = np.zeros(label.shape, np.uint8)
        mask[region.rows, region.columns] = region.mask
        mask = cv2.resize(mask[place], size, interpolation=cv2.INTER_NEAREST)
        contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        pictures = (image, colored(image, label, classes), colored(image, predicted, classes))
        drawn = [cv2.resize(picture[place], size, interpolation=cv2.INTER_LINEAR) for picture in pictures]
        for picture in drawn:
            cv2.drawContours(picture, contours, -1, (0, 0, 0), 3)
            cv2.drawContours(picture, contours, -1, (255, 255, 255), 1)
        return drawn

    def print_pairs(self) -> None:
        """Prints the pairs of classes with the most pixels off the diagonal of the confident joint."""
        joint, names = self.joint.joint, self.split.classes.names
        table = figure_table("labelled", "confidently", "pixels", "of that label", title="the commonest contradictions")
        wrong = joint * (1 - np.eye(len(joint), dtype=int))
        for place in np.argsort(-wrong, axis=None)[:PAIRS]:
            given, other = divmod(int(place), len(joint))
            if pixels := int(wrong[given, other]):
                table.add_row(names[given], names[other], str(pixels), f"{pixels / joint[given].sum():.2%}")
        Console().print(table)


def surroundings(region: Region, size: tuple[int, ...]) -> tuple[slice, slice]:
    """Returns the rows and columns to show of a picture of this size, with the region in their middle."""
    rows, columns = region.rows, region.columns
    height = max(CONTEXT * max(rows.stop - rows.start, (columns.stop - columns.start) / 2), SMALLEST)

    def around(box: slice, side: float, whole: int) -> slice:
        length = min(round(side), whole)
        start = min(max((box.start + box.stop - length) // 2, 0), whole - length)
        return slice(start, start + length)

    return around(rows, height, size[0]), around(columns, height * 4 / 3, size[1])


def run_suspects(job: SuspectsJob) -> int:
    """Finds the suspects and writes them in order of self-confidence; prints the commonest pairs of classes."""
    require_new_folder(job.output, [job.model, job.data], overwrite=job.overwrite)
    if job.count < 1:
        raise InputError(f"-n must be 1 or more, got {job.count}")
    model = open_model(job.model)
    if isinstance(model, Model):
        refuse_classifier(model.meta, model.name)
    if str(job.data) == "street":
        raise InputError("the street's labels are exact; give a data folder")
    split = LabelledData(job.data, job.split, "stills", None, model).images(model.meta.classes).require_ids("suspects")
    note_seen(job, model)
    method = MethodOptions(mode="dnn") if isinstance(model, Model) else MethodOptions()  # a graph file has one method
    check = LabelCheck(split, make_segmenter(model, method, RunOptions(keep_probs=True)))
    found = check.find()
    ranked = sorted(found, key=lambda item: item[1].self_confidence)[: job.count]
    if not ranked:
        print(f"no suspect region in {len(split)} pictures")
        return 0
    rows = [check.row(rank, *one) for rank, one in enumerate(ranked, 1)]
    with whole_folder(job.output, replace=job.overwrite) as folder:
        with (folder / TABLE_FILE).open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        cells = [
            Cell(f"{row['rank']}. {row['picture']}: {row['reason']}", strip(*check.draw(number, one.region)))
            for row, (number, one) in zip(rows[:SHOWN], ranked, strict=False)
        ]
        write_sheet(folder / SHEET_FILE, cells, split.classes)
    check.print_pairs()
    listed = job.output / TABLE_FILE
    print(f"{len(found)} suspect regions in {len(split)} pictures, the first {len(ranked)} in {listed}")
    print(f"look at {job.output / SHEET_FILE}")
    return 0


def note_seen(job: SuspectsJob, model: Model | OnnxFile) -> None:
    """Prints a remark if the network's record says that it was trained on these labels; a graph file has no record."""
    trained_on = model.meta.training.get("config", {}).get("data") if isinstance(model, Model) else None
    if isinstance(model, Model) and job.split == "train" and trained_on == job.data.name:
        Console(stderr=True).print(
            f"note: {model.name} was trained on {trained_on}; if these are the same labels, it learned wrong ones too "
            "and finds fewer: train it without the pictures to check (--config exclude=FILE)",
            soft_wrap=True,
        )
