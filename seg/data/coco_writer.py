"""Label maps as a COCO file: one annotation with run lengths for each connected region."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from steadyseg.seg.data.regions import connected_regions


class CocoLabels:
    """The content of a COCO file, to which pictures are added one by one. Categories are the class ids + 1, as label
    tools count from 1."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._images, self._annotations = list[Any](), list[Any]()

    def add(self, file_name: str, ids: np.ndarray, confidence: np.ndarray) -> None:
        """Adds a picture's label.

        Args:
            file_name: Path of the picture relative to the COCO file.
            ids: (H, W) uint8 class ids; other values are left out.
            confidence: (H, W) uint8, 255 = 1; the mean of a region becomes its `score`.
        """
        height, width = ids.shape
        number = len(self._images) + 1
        self._images.append({"id": number, "file_name": file_name, "height": height, "width": width})
        for region in connected_regions(np.where(ids < len(self._names), ids.astype(np.int64), -1)):
            mask = np.zeros((height, width), bool)
            mask[region.rows, region.columns] = region.mask
            box_height, box_width = region.mask.shape
            annotation = {
                "id": len(self._annotations) + 1,
                "image_id": number,
                "category_id": region.id + 1,
                "bbox": [region.columns.start, region.rows.start, box_width, box_height],
                "area": region.pixels,
                "iscrowd": 1,  # COCO's mark of run lengths
                "segmentation": {"size": [height, width], "counts": run_lengths(mask)},
                "score": round(float(confidence[mask].mean()) / 255, 4),
            }
            self._annotations.append(annotation)

    def write(self, path: Path) -> None:
        """Writes the file."""
        categories = [{"id": number, "name": name} for number, name in enumerate(self._names, 1)]
        content = {"images": self._images, "categories": categories, "annotations": self._annotations}
        path.write_text(json.dumps(content, separators=(",", ":")))


def run_lengths(mask: np.ndarray) -> list[int]:
    """Returns the alternating run lengths of (H, W) bool down the columns, beginning with False."""
    flat = mask.T.ravel()
    ends = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths: list[int] = np.diff([0, *ends, flat.size]).tolist()
    return [0, *lengths] if flat[0] else lengths
