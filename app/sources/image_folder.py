"""Image files in natural order as a video."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from steadyseg.app.sources.source import MAX_PIXELS, Source, SourceInfo, check_size, frame_name
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.system.pictures import HEIC, has_suffix, look_at, natural_order, read_upright, upright_size

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".avif", *HEIC)
VIDEO_SUFFIXES = tuple(".mp4 .mkv .mov .avi .webm .m4v .mpg .mpeg .ts .flv .wmv .mxf .gif .ogv".split())
"""Suffixes of videos in a folder; `video` and `--source` take a file with any suffix."""
FOLDER_FPS = 25.0
"""Frame rate of a folder, since images have none; the notes state it."""
CONVERTED = {"RGB": "", "L": "grey", "1": "grey", "LA": "grey", "P": "palette", "RGBA": "transparent", "CMYK": "CMYK"}
"""Names of Pillow modes in the notes; every other mode has more than 8 bits a channel."""


def list_images(folder: Path) -> tuple[Path, ...]:
    """Image files of a folder, frame2 before frame10. Raises InputError if there are no images."""
    try:
        paths = [path for path in folder.iterdir() if has_suffix(path, IMAGE_SUFFIXES) and path.is_file()]
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
    if not paths:
        raise InputError(f"{folder}: holds no images; expected {', '.join(IMAGE_SUFFIXES)}")
    return tuple(sorted(paths, key=lambda path: natural_order(path.name)))


Header = tuple[tuple[int, int], str]
"""((width, height), mode) of an image file, read without decoding it; the size is after the rotation by EXIF."""


class FolderSource(Source):
    """All readable images as frames, of any sizes. Unreadable images are counted and leave a gap in the frame
    numbers."""

    def __init__(self, paths: Sequence[Path], name: str, max_pixels: int = MAX_PIXELS) -> None:
        self.losses: Counter[str] = Counter()
        self._paths = tuple(paths)
        headers, refused = list[Header](), list[InputError]()
        for path in self._paths:
            try:
                headers.append(look_at(path, lambda picture: (upright_size(picture), picture.mode)))
            except InputError as error:
                refused.append(error)
        if not headers:
            raise InputError(f"{name}: none of the {len(paths)} images can be read ({refused[0]})")
        for size, _ in headers:
            check_size(name, *size, max_pixels)
        self.info = SourceInfo(
            name, *headers[0][0], FOLDER_FPS, len(paths), live=False, notes=_notes(headers), is_picture=len(paths) == 1
        )
        stems = [path.stem for path in self._paths]
        self._names = stems if len(set(stems)) == len(stems) else [path.name for path in self._paths]

    def __iter__(self) -> Iterator[Frame]:
        shape = (self.info.height, self.info.width)
        fresh = True
        for index, path in enumerate(self._paths):
            try:
                image = read_upright(path)
            except InputError:
                self.losses["decode_error"] += 1
                continue
            resized, shape = image.shape[:2] != shape, image.shape[:2]
            self.losses["size_change"] += resized
            yield Frame(image, index, index / FOLDER_FPS, discontinuity=fresh or resized)
            fresh = False

    def frame_name(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else frame_name(index)


def _notes(headers: Sequence[Header]) -> tuple[str, ...]:
    kinds = Counter(CONVERTED.get(mode, "high-depth") for _, mode in headers)
    notes = [f"{count} {kind} images are converted to 8-bit RGB" for kind, count in sorted(kinds.items()) if kind]
    if len({size for size, _ in headers}) > 1:
        notes.append("the images differ in size")
    return (
        (*notes, f"images carry no frame rate; {FOLDER_FPS:g} a second is assumed") if len(headers) > 1 else (*notes,)
    )
