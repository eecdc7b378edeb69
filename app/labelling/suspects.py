"""`steadyseg suspects`: lists labels that are probably wrong, by confident learning, with reasons and pictures."""

from typing import NamedTuple

import numpy as np
import torch

from app.console import Console, figure_table, track
from app.contact_sheet import SHEET_FILE, WIDTH, Cell, colored, strip, write_sheet
from app.evaluation.data import LabelledData
from app.executors import RunOptions
from app.labelling.flags import SuspectsJob
from app.labelling.pick_files import write_table
from app.open_model import is_graph, make_segmenter, open_checkpoint, refuse_classifier
from app.opencv import opencv
from core.classes import ClassList
from core.errors import InputError
from core.frame import Frame
from core.method import MethodOptions
from core.model.model import Model
from core.segmenter import Segmenter
from core.system.files import require_new_folder, whole_folder
from seg.data.camvid import ImageFolderSplit
from seg.evaluate import enlarge
from seg.label_errors import ConfidentJoint, Suspect, find_suspects, rank_suspects

TABLE_FILE = "suspects.csv"
SHOWN, PAIRS = 40, 5
"""Suspects on the contact sheet; pairs of classes in the terminal."""
CONTEXT, SMALLEST = 2.0, 96
"""Side of a picture on the sheet: that of the region times `CONTEXT`, and at least `SMALLEST` pixels."""


class Found(NamedTuple):
    """A suspect region and its picture."""

    number: int
    """Place of the picture in the split."""
    suspect: Suspect


class LabelCheck:
    """The pictures of a split, the network's probabilities for them, and the confident joint."""

    def __init__(self, split: ImageFolderSplit, segmenter: Segmenter) -> None:
        """`segmenter` keeps its probabilities."""
        self.split, self._segmenter, self.joint = split, segmenter, ConfidentJoint(len(segmenter.classes))

    def probs(self, image: np.ndarray) -> np.ndarray:
        """Returns the probabilities (K, H, W) of an image (H, W, 3)."""
        maps = self._segmenter.step(Frame(image, 0, 0.0, discontinuity=True))
        return enlarge(torch.from_numpy(maps.probs)[None], image.shape[:2])[0].numpy()

    def find(self) -> list[Found]:
        """Goes over the pictures twice, for the class thresholds and for the suspect regions; the network runs in both
        passes, so that memory does not grow with the data."""
        found = list[Found]()
        for number in track(range(len(self.split)), "class thresholds"):
            image, label = self.split[number]
            self.joint.add_to_thresholds(self.probs(image), label)
        for number in track(range(len(self.split)), "suspect regions"):
            image, label = self.split[number]
            probs = self.probs(image)
            confident = self.joint.confident_classes(probs)
            self.joint.add_to_joint(label, confident)
            found += (Found(number, one) for one in find_suspects(confident, probs, label))
        return found


def run_suspects(job: SuspectsJob) -> int:
    """Finds and ranks the suspects, prints the commonest pairs of classes, and writes table and contact sheet."""
    require_new_folder(job.output, overwrite=job.overwrite)
    if job.count < 1:
        raise InputError(f"-n must be 1 or more, got {job.count}")
    if is_graph(job.model):
        raise InputError(f"{job.model}: a graph file gives no probabilities; give the checkpoint it was made from")
    if str(job.data) == "street":
        raise InputError("the street's labels are exact; give a data folder")
    model = open_checkpoint(job.model)
    refuse_classifier(model)
    split = LabelledData(job.data, job.split, "stills", None, model).images(model.meta.classes)
    console = Console(stderr=True)
    if note := seen_note(job, model):
        console.print(note, soft_wrap=True)
    check = LabelCheck(split, make_segmenter(model, MethodOptions(mode="dnn"), RunOptions(keep_probs=True)))
    found = check.find()
    ranked = [(score, found[place]) for score, place in rank_suspects([one.suspect for one in found])][: job.count]
    if not ranked:
        print(f"no suspect region in {len(split)} pictures")
        return 0
    with whole_folder(job.output, replace=job.overwrite) as folder:
        write_table(folder / TABLE_FILE, [row_of(rank, *one, split) for rank, one in enumerate(ranked, 1)])
        cells = [draw(rank, one, check) for rank, (_, one) in enumerate(ranked[:SHOWN], 1)]
        write_sheet(folder / SHEET_FILE, cells, split.classes)
    print_pairs(check.joint.joint, split.classes)
    print(
        f"{len(found)} suspect regions in {len(split)} pictures, the first {len(ranked)} in {job.output / TABLE_FILE}"
    )
    print(f"look at {job.output / SHEET_FILE}")
    return 0


def seen_note(job: SuspectsJob, model: Model) -> str:
    """Returns a remark if the network's record says that it was trained on these labels; else an empty text."""
    trained_on = model.meta.training.get("config", {}).get("data")
    if job.split != "train" or trained_on != job.data.name:
        return ""
    return (
        f"note: {model.name} was trained on {trained_on}; if these are the same labels, it learned wrong ones too and "
        "finds fewer: train it without the pictures to check (--config exclude=FILE)"
    )


def row_of(rank: int, score: float, found: Found, split: ImageFolderSplit) -> dict[str, object]:
    """Returns the row of a suspect in the table."""
    names, one = split.classes.names, found.suspect
    return {
        "rank": rank,
        "picture": split.examples[found.number].name,
        "left": one.columns.start,
        "top": one.rows.start,
        "width": one.columns.stop - one.columns.start,
        "height": one.rows.stop - one.rows.start,
        "pixels": one.pixels,
        "label": names[one.label],
        "suggested": names[one.suggested],
        "self_confidence": round(one.self_confidence, 4),
        "normalized_margin": round(one.normalized_margin, 4),
        "score": round(score, 3),
        "reason": describe(one, split.classes),
    }


def describe(one: Suspect, classes: ClassList) -> str:
    """Returns the reason in words."""
    given, suggested = classes.names[one.label], classes.names[one.suggested]
    return f"labelled {given} ({one.self_confidence:.1%}), the network gives {suggested} {one.confidence:.0%}"


def draw(rank: int, found: Found, check: LabelCheck) -> Cell:
    """Draws the surroundings of the region three times, with its outline: picture, label and prediction."""
    split, one = check.split, found.suspect
    image, label = split[found.number]
    probs = check.probs(image)
    mask = np.zeros(label.shape, np.uint8)
    mask[one.rows, one.columns] = one.mask(label, check.joint.confident_classes(probs))
    place = surroundings(one, label.shape)
    pictures = (image, colored(image, label, split.classes), colored(image, probs.argmax(0), split.classes))
    outlined = (outline(picture[place], mask[place]) for picture in pictures)
    name = split.examples[found.number].name
    return Cell(f"{rank}. {name}: {describe(one, split.classes)}", strip(*outlined))


def surroundings(one: Suspect, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Returns the part of the picture around the region, at 4:3 where the picture is large enough."""
    sides = (one.rows.stop - one.rows.start, one.columns.stop - one.columns.start)
    height = max(CONTEXT * sides[0], CONTEXT * sides[1] * 3 / 4, SMALLEST)
    parts = []
    for box, side, whole in zip((one.rows, one.columns), (height, height * 4 / 3), shape, strict=True):
        length = min(round(side), whole)
        start = min(max((box.start + box.stop - length) // 2, 0), whole - length)
        parts.append(slice(start, start + length))
    return parts[0], parts[1]


def outline(picture: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Enlarges picture and mask to the width of the sheet and draws the outline of the mask, white on black."""
    cv2 = opencv()
    size = (WIDTH, max(1, round(picture.shape[0] * WIDTH / picture.shape[1])))
    picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    mask = cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST)
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    for color, width in ((0, 0, 0), 3), ((255, 255, 255), 1):
        cv2.drawContours(picture, contours, -1, color, width)
    return np.asarray(picture)


def print_pairs(joint: np.ndarray, classes: ClassList) -> None:
    """Prints the pairs of classes with the most pixels off the diagonal of the confident joint."""
    table = figure_table("labelled", "confidently", "pixels", "of that label", title="the commonest contradictions")
    wrong = joint * (1 - np.eye(len(joint), dtype=int))
    for place in np.argsort(-wrong, axis=None)[:PAIRS]:
        given, other = divmod(int(place), len(joint))
        if pixels := int(wrong[given, other]):
            share = f"{pixels / joint[given].sum():.2%}"
            table.add_row(classes.names[given], classes.names[other], str(pixels), share)
    Console().print(table)
