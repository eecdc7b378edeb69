"""Label files for label tools are read back as they were."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadyseg.seg.data.formats.open_source import open_labels
from steadyseg.seg.data.label_writer import FILES, LabelWriter, Tool
from steadyseg.seg.street.drive import Street

NAMES = tuple(f"class {number}" for number in range(32))


def label_map() -> np.ndarray:
    """A street, with noise whose regions touch at corners, have holes and lie in each other's holes."""
    (frame,) = Street(seed=7, height=96, width=128).frames(1, 100)
    assert frame.label is not None
    ids = np.where(frame.label < len(NAMES), frame.label, 255).astype(np.uint8)
    ids[40:60, 40:70] = np.random.default_rng(0).integers(0, 3, (20, 30))
    ids[5:9, 5:9] = 255
    return ids


def write(folder: Path, tool: Tool) -> np.ndarray:
    ids = label_map()
    (folder / "images").mkdir()
    Image.fromarray(np.zeros((*ids.shape, 3), np.uint8)).save(folder / "images" / "a.png")
    labels = LabelWriter(NAMES, tool)
    labels.add("images/a.png", ids, np.full(ids.shape, 51, np.uint8))
    labels.write(folder)
    return ids


@pytest.mark.parametrize("tool", FILES)
def test_every_pixel_is_read_back(tool: Tool, tmp_path: Path) -> None:
    ids = write(tmp_path, tool)
    source = open_labels(tmp_path / FILES[tool])
    read = source.pictures[0].read().ids
    expected = np.array([*NAMES, ""])[np.minimum(ids, len(NAMES))]
    found = np.array([*source.names, ""])[np.minimum(read, len(source.names))]
    assert np.array_equal(found, expected), (found != expected).sum()


def test_pycocotools_reads_the_masks(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    ids = write(tmp_path, "coco")
    read, found = coco.COCO(str(tmp_path / "coco.json")), np.full(ids.shape, 255)
    for one in read.loadAnns(read.getAnnIds()):
        found[read.annToMask(one) > 0] = one["category_id"] - 1
    assert np.array_equal(found, ids)
