"""Trainings on labels of one's own: what must be said first, what stops them, and what is held out."""

import json
from pathlib import Path

import numpy as np
import pytest
from made.pictures import picture, save_split
from refusals import refusal

from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.seg.data.class_file import classes_of
from steadyseg.seg.data.formats.source import CLASSES_FILE
from steadyseg.seg.data.statistics import count_pixels, describe_shares, require_every_class
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.training_set import LabelledImages, open_training_images

OWN = ClassList(("ground", "thing"), ((1, 1, 1), (2, 2, 2)), 255)


def own_folder(root: Path, names: list[str], split: str = "train", listed: bool = True) -> Path:
    label = np.zeros((12, 16), np.uint8)
    label[:, 8:] = 1
    save_split(root, split, ((name, picture(number), label) for number, name in enumerate(names)))
    if listed:
        record = {"names": OWN.names, "colors": OWN.colors, "void": OWN.void}
        (root / CLASSES_FILE).write_text(json.dumps(record))
    return root


def test_only_camvid_s_pictures_have_camvid_s_classes_unsaid(tmp_path: Path) -> None:
    own = own_folder(tmp_path / "own", ["a_1", "a_2"], listed=False)
    assert "--classes FILE.json" in refusal(classes_of, own, None) and str(own) in refusal(classes_of, own, None)
    assert classes_of(own, Path("camvid")) == CAMVID
    assert classes_of(own_folder(tmp_path / "listed", ["a_1"]), None) == OWN
    assert classes_of(own_folder(tmp_path / "camvid", ["0016E5_00390", "Seq05VD_f00000"], listed=False), None) == CAMVID
    assert classes_of(Path("street"), None) == CAMVID


def test_masks_of_zero_and_the_void_id_stop_a_training() -> None:
    mask = np.zeros((10, 10), np.uint8)
    mask[:2] = 255
    line = refusal(require_every_class, count_pixels([mask], OWN), OWN)
    assert "no training picture has a pixel of thing" in line and "20.0% of the pixels are void (id 255)" in line
    assert "--config allow_missing_classes=true" in line
    require_every_class(count_pixels([np.zeros((2, 2), np.uint8)], CAMVID_31), CAMVID_31)


def test_shares_name_what_is_rare_what_is_not_held_out_and_the_constant_answer() -> None:
    label = np.zeros((100, 100), np.uint8)
    label[0, :5] = 1
    held = np.zeros((10, 10), np.uint8)
    held[:1] = 255
    text = "\n".join(describe_shares(count_pixels(4 * [label], OWN), count_pixels([held], OWN), OWN))
    assert "thing (4 images)" in text and "held out: no pixel of thing" in text
    assert "always answering ground is right in 100.0% of the held-out pixels" in text and "10.00%" in text


def test_own_pictures_are_held_out_from_val_or_by_recording_or_that_is_said(tmp_path: Path) -> None:
    few = own_folder(tmp_path / "few", [f"a_{number}" for number in range(6)])
    trained, held_out, _, (remark,) = open_training_images(SegTrainConfig(data=few), OWN)
    assert (len(trained), len(held_out)) == (6, 0) and "6 labelled pictures are too few to divide" in remark

    many = own_folder(tmp_path / "many", [f"{drive}_{number}" for drive in "abcdefgh" for number in range(5)])
    trained, held_out, names, remarks = open_training_images(SegTrainConfig(data=many), OWN)
    assert (len(trained), len(held_out), len({name[0] for name in names})) == (35, 5, 1) and not remarks

    own_folder(many, ["z_1"], "val")
    trained, held_out, names, (remark,) = open_training_images(SegTrainConfig(data=many), OWN)
    assert (len(trained), len(held_out), names) == (40, 1, []) and "val's 1 images" in remark
    trained, held_out, _, remarks = open_training_images(SegTrainConfig(data=many, hold_out=Path("none")), OWN)
    assert (len(trained), len(held_out), remarks) == (40, 0, ())


def test_pictures_that_do_not_fit_are_read_again_and_are_the_same() -> None:
    made = [(picture(number), np.full((12, 16), number, np.uint8)) for number in range(6)]
    read: list[int] = []

    class Source:
        def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
            read.append(index)
            return made[index]

    images = LabelledImages(Source(), [5, 3, 1, 0], kept_bytes=2.5 * 12 * 16 * 4)
    read.clear()
    assert [int(label[0, 0]) for _, label in images] == [5, 3, 1, 0] and read == [1, 0]
    assert int(images[3][1][0, 0]) == 0 and int(images[0][1][0, 0]) == 5 and read == [1, 0, 0]


MEMORY = """
import sys
from pathlib import Path
import torch
from steadyseg.core.training.parts import Run
from steadyseg.seg.train import prepare_segmentation
from steadyseg.seg.options import SegTrainConfig, AugmentOptions, UNetOptions
from steadyseg.core.training.config import TrainConfig

config = SegTrainConfig(
    data=Path(sys.argv[1]), unet=UNetOptions(channels=2, depth=3, dropout_places=()), size=96, loaders=0,
    augment=AugmentOptions(crop_height=64, crop_width=64), loop=TrainConfig(epochs=1, batch_size=4, threads=1),
)
parts = prepare_segmentation(config, Run(Path(sys.argv[2]), torch.device("cpu")))
for _ in parts.batches(0):
    pass
status = Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    """Peak resident memory of an epoch over 2,000 pictures of 640x480 is within 100 MB of that over 200."""
    import subprocess
    import sys

    peaks_kb = []
    for count in (200, 2000):
        root = tmp_path / str(count)
        label = np.zeros((480, 640), np.uint8)
        label[:, 320:] = 1
        image = np.arange(640, dtype=np.uint16).repeat(3).reshape(1, 640, 3).repeat(480, 0).astype(np.uint8)
        save_split(root, "train", [("0", image, label)])
        for number in range(1, count):
            for folder in ("train", "trainannot"):
                (root / folder / f"{number}.png").symlink_to("0.png")
        (root / CLASSES_FILE).write_text(json.dumps({"names": OWN.names, "colors": OWN.colors, "void": OWN.void}))
        words = [sys.executable, "-c", MEMORY, str(root), str(tmp_path / "run")]
        done = subprocess.run(words, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        peaks_kb.append(int(done.stdout))
    assert peaks_kb[1] - peaks_kb[0] < 100_000
