"""Writes this folder's label files with the libraries of the tools themselves.

pip install pycocotools label-studio-converter datumaro && python tests/seg/data/exports/make.py

Each file labels the two pictures a_1.png and a_2.png (60x40). truth/NAME.png has the class numbers (road 0, car 1,
255 unlabelled) as pycocotools decodes them.
"""

import json
import shutil
from pathlib import Path

import datumaro as dm
import numpy as np
from label_studio_converter import brush
from PIL import Image
from pycocotools import mask as coco_mask

HERE = Path(__file__).parent
HEIGHT, WIDTH = 40, 60
NAMES = ("road", "car")
COLORS = ((128, 64, 128), (64, 0, 128))
ROADS = {"a_1": [0, 20, 60, 20, 60, 40, 0, 40], "a_2": [4.3, 38.2, 27.6, 11.4, 33.1, 12.9, 55.7, 39.5]}


def car(name: str) -> np.ndarray:
    """A blob with a hole, so that its outline needs run lengths."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    distance = np.hypot(rows - 25, columns - (20 if name == "a_1" else 40))
    return ((distance < 8) & (distance > 3)).astype(np.uint8)


def road(name: str) -> np.ndarray:
    return coco_mask.decode(coco_mask.merge(coco_mask.frPyObjects([ROADS[name]], HEIGHT, WIDTH)))


def make_pictures() -> None:
    (HERE / "pictures").mkdir()
    (HERE / "truth").mkdir()
    for seed, name in enumerate(ROADS):
        noise = np.random.default_rng(seed).integers(0, 256, (HEIGHT // 8, WIDTH // 4, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((WIDTH, HEIGHT), Image.Resampling.NEAREST).save(HERE / "pictures" / f"{name}.png")
        truth = np.where(road(name), 0, 255).astype(np.uint8)
        truth[car(name) == 1] = 1
        Image.fromarray(truth).save(HERE / "truth" / f"{name}.png")


def make_coco() -> None:
    """The road as a polygon, a car as compressed run lengths, the other as a list of them."""
    annotations = []
    for image, name in enumerate(ROADS, 1):
        packed = coco_mask.encode(np.asfortranarray(car(name)))
        runs = car(name).T.ravel()
        edges = np.flatnonzero(np.diff(np.r_[0, runs, 1 - runs[-1]]))
        lengths = np.diff(np.r_[0, edges]).tolist()
        segmentation = {"size": [HEIGHT, WIDTH], "counts": packed["counts"].decode() if name == "a_1" else lengths}
        for category, marked, iscrowd in ((3, segmentation, 1), (1, [ROADS[name]], 0)):
            one = {"id": len(annotations) + 1, "image_id": image, "category_id": category}
            annotations.append(one | {"segmentation": marked, "iscrowd": iscrowd})
    images = [
        {"id": i, "file_name": f"{name}.png", "width": WIDTH, "height": HEIGHT} for i, name in enumerate(ROADS, 1)
    ]
    categories = [{"id": 1, "name": "road"}, {"id": 2, "name": "never"}, {"id": 3, "name": "car"}]
    record = {"images": images, "categories": categories, "annotations": annotations}
    (HERE / "coco.json").write_text(json.dumps(record))


def make_datumaro() -> None:
    """CVAT for images 1.1 with a polygon and a mask; VOC with Datumaro's labelmap."""
    items = []
    for name in ROADS:
        image = dm.Image.from_file(str(HERE / "pictures" / f"{name}.png"))
        outlines = [dm.Polygon(ROADS[name], label=0, z_order=0), dm.Mask(car(name), label=1, z_order=1)]
        truth = np.asarray(Image.open(HERE / "truth" / f"{name}.png"))
        masks = [dm.Mask(truth == number, label=number) for number in range(2)]
        items.append((name, image, outlines, masks))
    for kind, place in (("cvat", 2), ("voc_segmentation", 3)):
        found = [dm.DatasetItem(id=item[0], subset="train", media=item[1], annotations=item[place]) for item in items]
        labels = dm.LabelCategories.from_iterable(NAMES)
        colors = dm.MaskCategories(dict(enumerate(COLORS)))
        categories = {dm.AnnotationType.label: labels, dm.AnnotationType.mask: colors}
        dataset = dm.Dataset.from_iterable(found, categories=categories, media_type=dm.Image)
        dataset.export(str(HERE / kind), kind, save_media=False)


def make_label_studio() -> None:
    """JSON as the server writes it, brushes packed by the converter; and the converter's PNGs."""
    tasks, outputs = [], []
    for task, name in enumerate(ROADS, 1):
        results = []
        for label, mask in (("road", road(name)), ("car", car(name))):
            value = {"format": "rle", "rle": brush.mask2rle(mask * 255), "brushlabels": [label]}
            one = {"id": label, "type": "brushlabels", "from_name": "tag", "to_name": "image", "value": value}
            results.append(one | {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0})
        data = {"image": f"/data/upload/1/0a1b2c3d-{name}.png"}
        tasks.append(
            {"id": task, "data": data, "annotations": [{"id": task, "result": results, "was_cancelled": False}]}
        )
        flat = [result | result["value"] | {"type": "brushlabels"} for result in results]
        outputs.append({"id": task, "annotation_id": task, "completed_by": {"email": "a@b.c"}, "output": {"tag": flat}})
    (HERE / "label_studio.json").write_text(json.dumps(tasks))
    folder = HERE / "label_studio_pngs"
    folder.mkdir()
    brush.convert_task_dir(outputs, str(folder), out_format="png")


if __name__ == "__main__":
    for path in HERE.iterdir():
        if path.name != "make.py":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    make_pictures()
    make_coco()
    make_datumaro()
    make_label_studio()
