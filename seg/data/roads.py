"""Data folders of other people's roads, IDD-Lite and LabelMeFacade, whose labels allow sets of CamVid's classes."""

import json
import shutil
from pathlib import Path

from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.system.files import whole_folder
from steadyseg.seg.data.formats.source import CLASSES_FILE, UNLABELLED

ALLOWS = {
    "idd-lite": {
        "0": ["Road"],
        "1": ["Pavement", "Tree"],  # non-drivable
        "2": ["Pedestrian", "Bicyclist"],  # living things
        "3": ["Car", "Bicyclist"],  # vehicles, two-wheelers included
        "4": ["Pole", "SignSymbol", "Fence", "Building", "Pavement"],  # roadside objects, kerbs and walls included
        "5": ["Building", "Tree"],  # far objects
        "6": ["Sky"],
    },
    "labelmefacade": {
        "0": ["Building"],
        "1": ["Car"],
        "2": ["Building"],  # door
        "3": ["Pavement"],
        "4": ["Road"],
        "5": ["Sky"],
        "6": ["Tree", "Pole"],  # lamp posts are painted as vegetation
        "7": ["Building"],  # window
    },
}
"""CamVid's classes that each id allows."""
PLACES = {"train/images": "train", "train/labels": "trainannot", "val/images": "val", "val/labels": "valannot"}
"""Folders of the sources, and of a data folder."""


def write_roads(source: Path, output: Path, overwrite: bool) -> list[Path]:
    """Copies both data sets from `source/NAME/SPLIT/images` and `labels` into data folders; returns these."""
    missing = [source / name / place for name in ALLOWS for place in PLACES if not (source / name / place).is_dir()]
    if missing:
        raise InputError(
            f"{missing[0]}: no such folder; expected {' and '.join(ALLOWS)} with train and val in {source}"
        )
    with whole_folder(output, replace=overwrite) as folder:
        for name, allows in ALLOWS.items():
            for place, own in PLACES.items():
                shutil.copytree(source / name / place, folder / name / own)
            record = {"names": CAMVID.names, "colors": CAMVID.colors, "allows": allows, "void": UNLABELLED}
            (folder / name / CLASSES_FILE).write_text(json.dumps(record, indent=1))
    return [output / name for name in ALLOWS]
