"""The pictures of the study by group: those for fitting, those for choosing, and those that are only reported on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from steadyseg.app.sources.open_source import open_source
from steadyseg.core.corruptions.camera_changes import gains, gamma, h264, random_camera, rescale
from steadyseg.core.seeds import mix_seed
from steadyseg.core.system.pictures import read_upright
from steadyseg.seg.data.held_out import CAMVID_STRETCHES, hold_out
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.seg.data.moving_stills import seed_of, still_clip
from steadyseg.seg.familiarity.frames import hold_out_blocks
from steadyseg.street.drive import Street
from steadyseg.studies.harness.study import data_digest

HEIGHT, WIDTH = 360, 480
CONTROL_STILLS = 30
CLIPS = {"motorway 1": "udacity_solidWhiteRight.mp4", "motorway 2": "udacity_vehicle_test_video.mp4"}
CLIP_FRAMES = 40


@dataclass(frozen=True, eq=False)
class Sample:
    """One picture of a group."""

    kind: str
    """Change of the picture, `clean` for none."""
    name: str
    """Name of the picture; the frames of a drive share the part before the first "_"."""
    image: np.ndarray
    label: np.ndarray | None = None


Samples = Iterator[Sample]


@dataclass(frozen=True)
class Data:
    """Folder of all data sets."""

    folder: Path

    @cached_property
    def digest(self) -> str:
        """Digest of CamVid's val and test."""
        return data_digest(self.folder / "camvid")

    def split(self, name: str) -> ImageFolderSplit:
        return open_split(self.folder / "camvid", name)

    @property
    def blocks(self) -> tuple[list[int], list[int]]:
        return hold_out_blocks([example.name for example in self.split("train").examples])

    @property
    def held_out(self) -> list[int]:
        """The frames that the trainings of CamVid hold out."""
        return list(hold_out([example.name for example in self.split("train").examples], CAMVID_STRETCHES).held_out)


def jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """Encodes the picture as a JPEG of this quality and decodes it."""
    import cv2

    _, data = cv2.imencode(".jpg", np.ascontiguousarray(image[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR))
    return np.ascontiguousarray(decoded[..., ::-1])


def drawing(*keys: int | str) -> np.random.Generator:
    return np.random.default_rng(mix_seed(*(seed_of(key) % 2**32 if isinstance(key, str) else key for key in keys)))


def of_split(data: Data, split: str, places: list[int]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    opened = data.split(split)
    for place in places:
        yield opened.examples[place].name, *opened[place]


def spread_over(count: int, wanted: int) -> list[int]:
    return sorted({int(place) for place in np.linspace(0, count - 1, min(wanted, count))})


def bank(data: Data) -> Samples:
    """Frames that means and covariances are fitted on: each unchanged, and as another camera would show it."""
    for name, image, _ in of_split(data, "train", sorted(set(data.blocks[0]) - set(data.held_out))):
        yield Sample("clean", name, image)
        yield Sample("camera", name, random_camera(image, drawing("fit", name)))


def held_out(data: Data) -> Samples:
    """Yields the frames of the held-out blocks, on which the scale of familiarity is fitted."""
    for name, image, label in of_split(data, "train", data.blocks[1]):
        yield Sample("clean", name, image, label)
        for number in range(2):
            yield Sample("camera", name, random_camera(image, drawing("held", name, number)), label)


def test(data: Data) -> Samples:
    for name, image, label in of_split(data, "test", list(range(len(data.split("test"))))):
        yield Sample("clean", name, image, label)


def val(data: Data) -> Samples:
    for name, image, label in of_split(data, "val", list(range(len(data.split("val"))))):
        yield Sample("clean", name, image, label)


CONTROLS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "JPEG 80": lambda image: jpeg(image, 80),
    "half size and back": lambda image: rescale(image, 0.5),
    "brightness +10 %": lambda image: gains(image, 1.1, 1.1, 1.1),
    "brightness -10 %": lambda image: gains(image, 0.9, 0.9, 0.9),
    "gamma 1.3": lambda image: gamma(image, 1.3),
    "gamma 0.77": lambda image: gamma(image, 1 / 1.3),
    "red +10 %, blue -10 %": lambda image: gains(image, 1.1, 1.0, 0.9),
    "red -10 %, blue +10 %": lambda image: gains(image, 0.9, 1.0, 1.1),
    "H.264 crf 18, 540 lines": lambda image: h264([image], 540, crf=18),
    "H.264 crf 28, 540 lines": lambda image: h264([image], 540, crf=28),
    "H.264 crf 28, 432 lines": lambda image: h264([image], 432, crf=28),
}


def controls(data: Data) -> Samples:
    """Other cameras, the codec of each clip, and mild changes: labels stay right and nothing should be novel."""
    places = spread_over(len(data.split("test")), CONTROL_STILLS)
    rates = {clip: clip_rate(data.folder / "video" / file) for clip, file in CLIPS.items()}
    for name, image, label in of_split(data, "test", places):
        for kind, change in CONTROLS.items():
            yield Sample(kind, name, change(image), label)
        moving = [picture for picture, _ in still_clip(image, label, 11, seed_of(name))]
        for clip, (height, bits) in rates.items():
            yield Sample(f"codec of {clip}", name, h264(moving, height, bits_per_second=bits), label)


def clip_rate(path: Path) -> tuple[int, int]:
    """(lines, bits per second for a 4:3 picture of so many lines) of a video."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        return stream.height, round((stream.bit_rate or 4_000_000) * (4 / 3) / (stream.width / stream.height))


def motorways(data: Data) -> Samples:
    for clip, file in CLIPS.items():
        with open_source(str(data.folder / "video" / file)) as source:
            count = source.info.length or CLIP_FRAMES
            wanted = set(spread_over(count, CLIP_FRAMES))
            for frame in source:
                if frame.index in wanted:
                    yield Sample(clip, f"{clip}_{frame.index}", frame.image)


def objects(data: Data) -> Samples:
    """Photographs of objects and rooms, small ones enlarged, and a camera that moves over a photograph."""
    import cv2

    photographs = sorted((data.folder / "imagenet-sample/imagenet-1k-24").glob("*.JPEG"))
    for path in photographs:
        image = cv2.resize(read_upright(path), (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
        yield Sample("photographs", path.stem, image)
    tiny = sorted((data.folder / "imagenet-sample/tiny-imagenet-10/val").rglob("*.JPEG"))
    for path in tiny[:: max(1, len(tiny) // 40)][:40]:
        image = cv2.resize(read_upright(path), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        yield Sample("small photographs", path.stem, image)
    from steadyseg.classification.data.cifar import find_cifar, open_cifar

    found = find_cifar(data.folder / "cifar10")
    assert found is not None
    cifar = open_cifar(*found, "test")
    for place in spread_over(len(cifar), 40):
        image = cv2.resize(np.asarray(cifar[place][0]), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        yield Sample("CIFAR-10 enlarged", f"cifar_{place}", image)
    for path in photographs[:6]:
        image = cv2.resize(read_upright(path), (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
        clip = still_clip(image, np.zeros(image.shape[:2], np.uint8), 11, seed_of(path.stem))
        for number, (picture, _) in enumerate(clip[:6]):
            yield Sample("moving photographs", f"{path.stem}_{number}", picture)


def no_pictures(data: Data) -> Samples:
    import cv2

    for number in range(12):
        draw = drawing("none", number)
        yield Sample("noise", f"noise{number}", draw.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))
        yield Sample("one colour", f"grey{number}", np.full((HEIGHT, WIDTH, 3), draw.integers(0, 256, 3), np.uint8))
        page = np.full((HEIGHT, WIDTH, 3), 255 - 20 * (number % 3), np.uint8)
        for line in range(12):
            words = "".join(chr(int(letter)) for letter in draw.integers(97, 123, 34))
            cv2.putText(page, words, (10, 28 + 29 * line), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (20, 20, 20), 1 + number % 2)
        yield Sample("text", f"text{number}", page)
        bars = np.repeat(draw.permutation(BARS), WIDTH // len(BARS), axis=0)[None].repeat(HEIGHT, 0).astype(np.uint8)
        bars = np.pad(bars, ((0, 0), (0, WIDTH - bars.shape[1]), (0, 0)), mode="edge")
        yield Sample("test pattern", f"bars{number}", bars)
        green = np.full((HEIGHT, WIDTH, 3), (0, 255, 0), np.uint8)  # like Chromium's made camera
        cv2.circle(green, (WIDTH // 2, HEIGHT // 2), 20 + 8 * number, (255, 255, 255), -1)
        yield Sample("green test pattern", f"green{number}", green)


BARS = np.array(
    [[255, 255, 255], [255, 255, 0], [0, 255, 255], [0, 255, 0], [255, 0, 255], [255, 0, 0], [0, 0, 255], [0, 0, 0]]
)


def street(data: Data) -> Samples:
    for number in range(30):
        frame = Street(seed=number // 6).frame(number % 6 * 60)
        yield Sample("street", f"street{number // 6}_{number % 6}", frame.image, frame.label)


GROUPS: dict[str, Callable[[Data], Samples]] = {
    "bank": bank,
    "held_out": held_out,
    "test": test,
    "motorways": motorways,
    "objects": objects,
    "no_pictures": no_pictures,
    "controls": controls,
    "val": val,
    "street": street,
}
