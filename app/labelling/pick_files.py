"""The folder of chosen frames: images, labels to correct, uncertainty, table of reasons and contact sheet."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from app.contact_sheet import SHEET_FILE, Cell, colored, strip, write_sheet
from app.labelling.candidates import FrameMeter
from app.video.render import draw_uncertainty
from core.classes import ClassList
from core.frame import Frame
from seg.data.coco_writer import CocoLabels

LABELS_FILE, TABLE_FILE, IMAGES, UNCERTAINTY = "coco.json", "frames.csv", "images", "uncertainty"


class Pick(NamedTuple):
    """A chosen frame and the reasons for it."""

    rank: int
    """From 1, in the order of the choice."""
    distance: float
    """Distance to the nearest frame that is labelled or was chosen before (`seg.selection.Chosen`)."""
    criteria: dict[str, float]
    reason: str


def write_picks(
    folder: Path, frames: Iterable[tuple[str, str, Frame, Pick]], meter: FrameMeter, classes: ClassList
) -> None:
    """Writes the frames, each with its name and that of its video; the table and the sheet are in order of rank."""
    for name in (IMAGES, UNCERTAINTY):
        (folder / name).mkdir()
    labels, rows, cells = CocoLabels(classes.names), dict[int, dict[str, object]](), dict[int, Cell]()
    for name, video, frame, pick in frames:
        maps = meter.measure(frame.image, pick.rank).maps
        file = f"{IMAGES}/{name}.png"
        Image.fromarray(frame.image).save(folder / file)
        Image.fromarray(maps.entropy).save(folder / UNCERTAINTY / f"{name}.png")
        labels.add(file, maps.label, maps.confidence)
        rows[pick.rank] = {
            "rank": pick.rank,
            "file": file,
            "video": video,
            "frame": frame.index,
            "time_s": round(frame.time_s, 3),
            **{name: round(value, 4) for name, value in pick.criteria.items()},
            "distance": round(pick.distance, 3) if math.isfinite(pick.distance) else "",
            "reason": pick.reason,
        }
        pictures = frame.image, colored(frame.image, maps.label, classes), draw_uncertainty(maps.entropy)
        cells[pick.rank] = Cell(f"{pick.rank}. {name}: {pick.reason}", strip(*pictures))
    labels.write(folder / LABELS_FILE)
    write_table(folder / TABLE_FILE, [rows[rank] for rank in sorted(rows)])
    write_sheet(folder / SHEET_FILE, [cells[rank] for rank in sorted(cells)], classes)


def write_table(path: Path, rows: list[dict[str, object]]) -> None:
    """Writes rows of equal keys as CSV."""
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
