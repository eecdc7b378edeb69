"""From a picture file to what the network sees: the one decoder, the network's size, the resize, the normalisation."""

import os
import struct
import zlib
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from made.pictures import picture
from PIL import Image
from refusals import refusal

from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.core.system.pictures import EXIF_ORIENTATION, MAX_SCANS, look_at, read_upright, to_rgb, upright_size


def tiff_of_two_sizes(real: int, said: int) -> bytes:
    """Its size tags come twice: readers differ in which of them they take."""
    data = zlib.compress(bytes(real * real))
    tags = [
        (256, real),
        (256, said),
        (257, real),
        (257, said),
        (258, 8),
        (259, 8),
        (262, 1),
        (273, 8),
        (277, 1),
        (278, real),
        (279, len(data)),
    ]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries + bytes(4)


def test_a_file_with_two_sizes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "made.tif"
    path.write_bytes(tiff_of_two_sizes(1000, said=16))
    assert cv2.imread(str(path)).shape == (1000, 1000, 3)  # the attack is a live one
    assert look_at(path, upright_size) == (16, 16)
    assert "cannot be read as an image" in refusal(read_upright, path)


def test_a_picture_beyond_the_limit_is_refused_by_its_header(tmp_path: Path) -> None:
    path = tmp_path / "large.ppm"
    path.write_bytes(b"P6 8192 8193 255\n")
    assert "8192x8193" in refusal(look_at, path, upright_size)


@pytest.mark.parametrize("name", ["i.jpg", "i.tif"])
def test_a_jpeg_of_many_scans_is_refused_before_it_is_decoded(tmp_path: Path, name: str) -> None:
    """Each scan of some 20 bytes costs a pass over the whole picture."""
    path = tmp_path / name
    few, many = jpeg_of_scans(MAX_SCANS // 2), jpeg_of_scans(MAX_SCANS + 1)
    path.write_bytes(in_tiff(few) if name == "i.tif" else few)
    assert (read_upright(path) == 100).all()
    path.write_bytes(in_tiff(many) if name == "i.tif" else many)
    assert "scans" in refusal(read_upright, path) and "scans" in refusal(look_at, path, upright_size)


def jpeg_of_scans(more: int) -> bytes:
    """A grey progressive JPEG of 64x64 whose last scan comes `more` times again."""
    file = BytesIO()
    Image.fromarray(np.full((64, 64), 100, np.uint8)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    last = data[data.rfind(b"\xff\xda") : -2]
    return data[:-2] + last * more + data[-2:]


def in_tiff(jpeg: bytes) -> bytes:
    """A grey TIFF of 64x64 in one strip, which is that JPEG."""
    tags = {256: 64, 257: 64, 258: 8, 259: 7, 262: 1, 273: 8, 277: 1, 278: 64, 279: len(jpeg)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    padded = jpeg + bytes(len(jpeg) % 2)
    return struct.pack("<2sHI", b"II", 42, 8 + len(padded)) + padded + struct.pack("<H", len(tags)) + entries + bytes(4)


def test_a_postscript_is_no_picture_whatever_it_is_called(tmp_path: Path) -> None:
    """Pillow would have Ghostscript run it."""
    path = tmp_path / "made.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 12\n%%EndComments\nshowpage\n")
    with Image.open(path) as opened:
        assert opened.format == "EPS"
    assert "cannot be read as an image" in refusal(look_at, path, upright_size)


@pytest.mark.parametrize(
    ("name", "orientation"), [("i.jpg", 3), ("i.png", 5), ("i.tif", 6), ("i.webp", 6), ("i.tif", 1)]
)
def test_the_size_is_that_of_the_upright_picture_in_every_format(tmp_path: Path, name: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    flat = np.zeros((48, 64, 3), np.uint8)
    flat[:24, :32] = 255
    options = {} if name == "i.tif" else {"quality": 95}
    Image.fromarray(flat).save(tmp_path / name, exif=exif, **options)
    turned = {1: flat, 3: flat[::-1, ::-1], 5: flat.transpose(1, 0, 2), 6: np.rot90(flat, -1)}[orientation]
    found = read_upright(tmp_path / name)
    assert found.shape == turned.shape and look_at(tmp_path / name, upright_size) == turned.shape[1::-1]
    assert np.abs(found.astype(int) - turned).mean() < 3


@pytest.mark.parametrize("name", ["i.png", "i.tif", "i.pgm"])
def test_of_sixteen_bits_the_high_ones_are_taken(tmp_path: Path, name: str) -> None:
    deep = (np.arange(12 * 16, dtype=np.uint16) * 300).reshape(12, 16)
    Image.fromarray(deep).save(tmp_path / name)
    assert (read_upright(tmp_path / name) == (deep >> 8)[..., None]).all()
    assert "8 bits a channel" in refusal(look_at, tmp_path / name, to_rgb)


def test_pixels_are_those_that_opencv_decodes(tmp_path: Path) -> None:
    """Networks were trained and measured on them."""
    for name in ("i.png", "i.jpg", "i.webp", "i.bmp"):
        Image.fromarray(picture(1, 48, 64)).save(tmp_path / name)
        np.testing.assert_array_equal(read_upright(tmp_path / name), cv2.imread(str(tmp_path / name))[..., ::-1])


@pytest.mark.parametrize("name", ["i.webp", "i.png", "i.tif", "i.avif"])
def test_a_file_of_several_pictures_is_refused(tmp_path: Path, name: str) -> None:
    first, second = (Image.fromarray(picture(seed)) for seed in range(2))
    first.save(tmp_path / name, save_all=True, append_images=[second])
    assert "several pictures in one file" in refusal(read_upright, tmp_path / name)


def test_an_avif_that_claims_fewer_pixels_than_it_has_is_refused(tmp_path: Path) -> None:
    """Pillow decodes all of them, and gives a picture of the claimed size."""
    Image.new("RGB", (2000, 1500), "red").save(tmp_path / "i.avif", speed=10)
    assert read_upright(tmp_path / "i.avif").shape == (1500, 2000, 3)
    data = (tmp_path / "i.avif").read_bytes()
    honest, claim = struct.pack(">II", 2000, 1500), struct.pack(">II", 16, 16)
    assert data.count(honest) == 1
    (tmp_path / "i.avif").write_bytes(data.replace(honest, claim))
    assert "more than it claims" in refusal(read_upright, tmp_path / "i.avif")


def test_a_pipe_of_a_pictures_name_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "i.png")
    assert "no regular file" in refusal(read_upright, tmp_path / "i.png")


@pytest.mark.parametrize(
    ("frame_height", "frame_width", "height", "expected"),
    [
        (720, 960, 360, (360, 480)),
        (1080, 1920, 360, (360, 640)),
        (480, 640, 288, (288, 384)),
        (1920, 1080, 360, (360, 192)),
        (100, 100, 100, (100, 96)),
        (1, 1, 360, (360, 352)),
        (5000, 1, 64, (64, 32)),
        (10, 160, 32, (32, 512)),
    ],
)
def test_the_height_is_given_and_the_width_keeps_the_aspect(frame_height, frame_width, height, expected):
    assert network_size(frame_height, frame_width, height) == expected


@pytest.mark.parametrize("size", [(7, 9), (60, 33), (13, 48)])
def test_the_resize_is_the_antialiased_bilinear_one(size: tuple[int, int]) -> None:
    """Pillow's bilinear resize is the triangle filter, widened by the factor when it shrinks."""
    image = np.random.default_rng(0).uniform(0, 255, (40, 48)).astype(np.float32)
    expected = np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))
    result = resize(torch.from_numpy(image)[None, None], size)[0, 0]
    np.testing.assert_allclose(result.numpy(), expected, atol=2e-3)


def test_an_image_of_the_right_size_is_left_alone() -> None:
    image = torch.randn(1, 3, 32, 64)
    assert resize(image, (32, 64)) is image


def test_normalisation_centres_and_scales_each_colour() -> None:
    mean, std = (0.41, 0.43, 0.44), (0.3, 0.31, 0.29)
    image = torch.randint(0, 256, (2, 3, 4, 5), generator=torch.Generator().manual_seed(0)).float()
    expected = (image.numpy().astype(np.float64) / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(Normalize(mean, std)(image).numpy(), expected, atol=1e-5)


def test_normalisation_is_no_part_of_the_weights() -> None:
    assert not Normalize((0.5, 0.5, 0.5), (0.2, 0.2, 0.2)).state_dict()
