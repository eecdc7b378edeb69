"""Reads picture files with one decoder and a limit on their size.

Two decoders can read two sizes out of one file. A TIFF of 1.9 kB had its size tags twice: Pillow read 16x16, and OpenCV
made 9000x9000 of it, 2.6 GB. So the decoder that reads the size for the check also decodes the picture.
"""

import re
import stat
import warnings
from collections.abc import Callable, Collection
from importlib import import_module
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from steadyseg.core.errors import InputError, in_line

MAX_PICTURE_PIXELS = 2**26
"""8192 x 8192: 201 MB as RGB."""
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM", "AVIF")
"""Formats that are read, by a file's content. Pillow knows forty more, and starts Ghostscript for one of them."""
HEIC = (".heic", ".heif")  # read as HEIF too
EIGHT_BITS = ("RGB", "L", "1", "P", "LA", "PA", "RGBA", "CMYK", "YCbCr")
"""Pillow's modes of 8 bits a channel."""
SIXTEEN_BITS = ("I;16", "I;16L", "I;16B")
"""Modes of grey pictures with 16 bits; coloured ones are opened with their high bytes."""
MAX_SCANS = 100
"""Scans of a JPEG. Encoders write at most 10 scans. A scan of 23 bytes costs a pass over the whole picture, 8 ms for
9.4 million pixels. Nothing stops the decoder before the last scan."""
EXIF_ORIENTATION, TIFF_OFFSETS, JPEG_IN_TIFF = 0x0112, 273, ("jpeg", "tiff_jpeg")
TURNS: dict[Any, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""By EXIF's orientation; 1 is upright."""

Seen = TypeVar("Seen")


def has_suffix(path: PurePath, suffixes: Collection[str]) -> bool:
    """Returns True for one of these endings; False for a hidden file, such as ._NAME in a Mac's archive."""
    return path.suffix.lower() in suffixes and not path.name.startswith(".")


def natural_order(name: str) -> tuple[list[tuple[bool, int, str]], str]:
    """Sort key that compares runs of digits as numbers: frame2 comes before frame10."""
    parts = re.split(r"(\d+)", name)
    return [(True, int(part), "") if part.isdecimal() else (False, 0, part) for part in parts], name


warnings.filterwarnings("ignore", module=r"PIL\.")  # remarks about damaged metadata are no line for a user


def look_at(path: Path, look: Callable[[Image.Image], Seen], content: bytes | None = None) -> Seen:
    """Returns the result of `look` on the picture, which is opened but not decoded and has an acceptable size.

    `content` holds the bytes of a file in an archive; `path` then only names it. Raises InputError, one line with the
    file's name, for a file that is no picture of these formats, too large or damaged.
    """
    try:
        formats = [*FORMATS]
        if path.suffix.lower() in HEIC:
            import_module("pillow_heif").register_heif_opener()
            formats.append("HEIF")
        if content is None and not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise ValueError("no regular file")
        with Image.open(path if content is None else BytesIO(content), formats=formats) as picture:
            width, height = picture.size
            if width * height > MAX_PICTURE_PIXELS:
                raise ValueError(f"{width}x{height}, at most {MAX_PICTURE_PIXELS} pixels are; scale it down")
            if getattr(picture, "n_frames", 1) > 1 and picture.format in ("AVIF", "WEBP", "PNG", "TIFF", "HEIF"):
                raise ValueError("several pictures in one file; make a video or single pictures of it")
            if picture.format == "JPEG" or picture.info.get("compression") in JPEG_IN_TIFF:
                strips = getattr(picture, "tag_v2", {}).get(TIFF_OFFSETS, ())  # a JPEG each
                require_few_scans(path.read_bytes() if content is None else content, MAX_SCANS + len(strips))
            if picture.format == "AVIF":
                require_true_claim(str(path) if content is None else BytesIO(content), width * height)
            return look(picture)
    except InputError:
        raise
    except Exception as error:  # whatever a parser met: OSError, struct.error, zlib.error, KeyError, SyntaxError ...
        why = in_line(error).split("'")[0].strip()[:200] or type(error).__name__  # without the path that Pillow adds
        raise InputError(f"{path}: cannot be read as an image ({why})") from error


def require_true_claim(file: str | BytesIO, pixels: int) -> None:
    """Raises ValueError for an AVIF whose parts are far larger than it claims: Pillow would decode and shrink them.

    A file of 3 kB claimed 16x16, and took 0.5 GB for its 16000x16000. A tile may exceed a small picture.
    """
    import av

    with av.open(file, options={"max_pixels": str(MAX_PICTURE_PIXELS)}) as container:
        parts = [stream.codec_context for stream in container.streams.video]
    if any(one.pix_fmt is None or one.width * one.height > 4 * pixels + 2**20 for one in parts):
        raise ValueError("its pixels are more than it claims, or another kind; save it as a PNG")


def require_few_scans(data: bytes, limit: int = MAX_SCANS) -> None:
    """Raises ValueError for JPEG data with more than `limit` scans. A scan's marker occurs nowhere else in the data."""
    if data.count(b"\xff\xda") > limit:
        raise ValueError(f"a JPEG of more than {limit} scans; save it anew")


def read_upright(path: Path) -> np.ndarray:
    """(H, W, 3) uint8 RGB, turned as the file's EXIF data ask; of 16-bit grey pictures the high bytes."""

    def look(picture: Image.Image) -> np.ndarray:
        picture.load()  # turns a TIFF by itself, and comes to EXIF data behind the pixels
        turn = TURNS.get(picture.getexif().get(EXIF_ORIENTATION))
        if picture.mode in SIXTEEN_BITS or (picture.mode == "I" and picture.format == "PPM"):
            picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
        return to_rgb(picture if turn is None else picture.transpose(turn))

    return look_at(path, look)


def to_rgb(picture: Image.Image) -> np.ndarray:
    """(H, W, 3) uint8: grey, palette and CMYK converted, transparency dropped. ValueError beyond 8 bits a channel."""
    if picture.mode not in EIGHT_BITS:
        raise ValueError(f"a picture of mode {picture.mode}; expected 8 bits a channel, convert it first")
    width, height = picture.size
    if picture.mode in ("P", "PA"):  # with transparency Pillow warns of a direct way to RGB
        picture = picture.convert("RGBA")
    image = np.array(picture if picture.mode == "RGBA" else picture.convert("RGB"))[..., :3]
    if image.shape != (height, width, 3):
        raise ValueError(f"it says {width}x{height} and holds {image.shape[1]}x{image.shape[0]}")
    return np.ascontiguousarray(image)


def upright_size(picture: Image.Image) -> tuple[int, int]:
    """(width, height) of `read_upright`, without decoding: EXIF data behind a PNG's pixels are not looked for."""
    if picture.format == "TIFF" or (picture.format == "PNG" and "exif" not in picture.info):
        return picture.size
    quarter_turn = picture.getexif().get(EXIF_ORIENTATION) in (5, 6, 7, 8)
    return picture.size[::-1] if quarter_turn else picture.size
