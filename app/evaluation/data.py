"""Labelled frames chosen by flags: a data folder or the street, a split, a protocol, a list of names."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steadyseg.core.classes import CAMVID, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.method import is_temporal
from steadyseg.core.model.model import Model
from steadyseg.core.segmenter import Backend, Segmenter
from steadyseg.export.file.onnx_file import OnnxFile
from steadyseg.runtime.open_model import is_classifier
from steadyseg.seg.data.held_out import recorded_names
from steadyseg.seg.data.label_folder import ImageFolderSplit, has_split, open_split, read_names
from steadyseg.seg.data.moving_stills import CLIP_FRAMES, MEASURED_FRAMES, moving_stills
from steadyseg.seg.data.sequence import open_sequence
from steadyseg.seg.evaluate import mark_stills

HELD_OUT = "held-out"
"""The images of train that a training held out."""
STREET_FRAMES = 100


@dataclass(frozen=True)
class EvaluationFrames:
    """Labelled frames with their names; `frames` can be iterated once."""

    names: list[str]
    frame_hash: str
    frames: Iterator[Frame]
    count: int
    """Number of frames; for moving stills there are more frames than names."""

    def place_of_name(self, place: int) -> int:
        """The place in `names` of the place-th frame's name."""
        return place * len(self.names) // self.count


@dataclass(frozen=True)
class LabelledData:
    """The flags that choose labelled frames."""

    data: Path
    split: str
    protocol: str
    frames: Path | None
    model: Model | OnnxFile
    """The network; its record lists the images that its training held out."""
    sequence: Path | None = None
    """Folder with all frames of the videos; the split has labels of some frames."""

    def __post_init__(self) -> None:
        """Raises InputError for flags that do not go with --sequence or --split held-out."""
        if self.sequence and (str(self.data) == "street" or self.protocol != "stream"):
            raise InputError(
                "--sequence is a folder of a video's frames, whose labels are in the data folder of --data; it goes "
                "with --protocol stream"
            )
        if self.split != HELD_OUT:
            return
        if self.protocol == "stream":
            raise InputError(
                "the stills that a training held out are no video; use --protocol moving-stills, or --protocol stills"
            )
        if str(self.data) == "street":
            raise InputError("--split held-out is a part of train in a data folder; the street has none")

    def open(self, segmenter: Segmenter | Backend, *, labelled_only: bool = False) -> EvaluationFrames:
        """Finds the files; InputError for missing files and for files that do not fit the network. `labelled_only`: of
        moving stills, render only frames with a label."""
        if str(self.data) == "street":
            from steadyseg.street.drive import Street

            if segmenter.classes != CAMVID:
                raise InputError("the street is labelled with CamVid's 11 classes and this model has others")
            if self.frames:
                raise InputError("--only names images of a data folder; the street has none")
            if self.protocol == "moving-stills":
                raise InputError("--protocol moving-stills moves photographs; the street moves by itself: use stream")
            street = Street(seed=0, height=segmenter.size[0], width=segmenter.size[1])
            names = [f"street_0_{index:06d}" for index in range(STREET_FRAMES)]
            frame_hash = f"street_0_{street.width}x{street.height}_{STREET_FRAMES}"
            frames = street.frames(STREET_FRAMES)
        else:
            split = self.images(segmenter.classes)
            if self.frames:
                split = split.subset(read_names(self.frames))
            if self.sequence:
                sequence = open_sequence(self.sequence, split)
                return EvaluationFrames(sequence.names, split.frame_hash, sequence.frames(), len(sequence.paths))
            names = [example.name for example in split.examples]
            if self.protocol == "moving-stills":
                each = MEASURED_FRAMES if labelled_only else CLIP_FRAMES
                return EvaluationFrames(names, split.frame_hash, moving_stills(split, each), len(split) * each)
            frames, frame_hash = split.frames(), split.frame_hash
        if self.protocol == "stills":
            frames = mark_stills(frames)
        return EvaluationFrames(names, frame_hash, frames, len(names))

    def images(self, classes: ClassList) -> ImageFolderSplit:
        """Opens the split of the folder, or the images of train that the record lists as held out."""
        if self.split != HELD_OUT:
            return open_split(self.data, self.split, classes)
        names = recorded_names(self.model.meta.training) if isinstance(self.model, Model) else []
        if not names:
            raise InputError(
                f"{self.model.path}: its record lists no images that its training held out; give another --split"
            )
        return open_split(self.data, "train", classes).subset(names)


def default_split(data: Path, model: Model | OnnxFile) -> str:
    """Returns the default split to evaluate on: test, else val, else the images that the training held out. InputError
    for a folder with none of them."""
    classifies = is_classifier(model)  # its splits may be archives, and its record has a number in place of names
    names = ("test", "val", "train")
    there = [split for split in names if has_split(data, split) or (classifies and (data / f"{split}.zip").is_file())]
    if there[:1] != ["train"]:
        return there[0] if there else "test"
    training = model.meta.training if isinstance(model, Model) else {}
    if training.get("held_out") if classifies else recorded_names(training):
        return HELD_OUT
    raise InputError(
        f"{data}: holds no test or val, and the network's record lists no held-out images of train; give --split train "
        "to measure it on train"
    )


def refuse_memory(mode: str) -> None:
    """Raises InputError for modes that average over earlier frames: stills have none."""
    if is_temporal(mode):
        raise InputError(
            f"mode {mode} averages over earlier frames and stills have none; use --protocol stream or "
            f"--mode {mode.removeprefix('vq-')}"
        )
