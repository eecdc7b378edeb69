"""Labelled frames as a label tool exports them, for `steadyseg data import`.

    python demos/label_street.py [FOLDER [SEED]]

Five drives on the synthetic street, ten frames of each, with four classes of their own as COCO polygons.
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

import json
from pathlib import Path

import cv2
import numpy as np

from steadyseg import Street

CLASSES = {"road": (3,), "walkway": (4,), "vehicle": (8, 10), "sign": (2, 6)}
"""CamVid's ids by own class."""
DRIVES, FRAMES, STEP = 5, 10, 20
HEIGHT, WIDTH = 240, 320


def main(folder: str = "labelled", first_seed: str = "100") -> None:
    pictures = Path(folder) / "frames"
    if pictures.exists():
        sys.exit(f"{pictures} exists; name another folder")
    pictures.mkdir(parents=True)
    images, annotations = [], []
    for drive in range(DRIVES):
        street = Street(seed=int(first_seed) + drive, height=HEIGHT, width=WIDTH)
        for index in range(FRAMES):
            frame = street.frame(STEP * index + 1)
            images.append(
                {"id": len(images), "file_name": f"drive{drive}_{index:02}.png", "height": HEIGHT, "width": WIDTH}
            )
            cv2.imwrite(str(pictures / images[-1]["file_name"]), frame.image[..., ::-1])
            for category, ids in enumerate(CLASSES.values()):
                mask = np.isin(frame.label, ids).astype(np.uint8)
                large = cv2.resize(mask, None, fx=4, fy=4, interpolation=cv2.INTER_NEAREST)
                outlines, _ = cv2.findContours(large, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
                outlined = {
                    "id": len(annotations),
                    "image_id": len(images) - 1,
                    "category_id": category,
                    "segmentation": [(outline.ravel() / 4).tolist() for outline in outlines if len(outline) > 2],
                }
                annotations.append(outlined)
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES)]
    record = {"images": images, "categories": categories, "annotations": annotations}
    Path(folder, "coco.json").write_text(json.dumps(record))
    print(f"{len(images)} frames in {pictures}, labels in {folder}/coco.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
