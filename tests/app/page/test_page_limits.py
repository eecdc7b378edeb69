"""What strangers can make the tab Live spend: time of the decoder, memory of networks."""

import io
import weakref

import numpy as np
import pytest
from made.page_visit import stripes
from PIL import Image

from steadyseg.app.page.live.camera_picture import SHAPES, camera_picture, cut
from steadyseg.app.page.parts.network_pool import MAX_IDLE, Lease, NetworkPool
from steadyseg.app.page.parts.pictures import jpeg
from steadyseg.core.errors import InputError


def saved(image: np.ndarray, **options: object) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", **options)
    return file.getvalue()


def with_marker(data: bytes, old: int, new: int) -> bytes:
    return data.replace(bytes([0xFF, old]), bytes([0xFF, new]), 1)


def test_only_pictures_of_one_scan_are_decoded() -> None:
    image = stripes(1)[0]
    good = saved(image)
    scan = good.index(b"\xff\xda")
    assert camera_picture(good).shape == camera_picture(saved(image[..., 0])).shape == image.shape
    for expected, picture in {
        "a progressive JPEG": saved(image, progressive=True),
        "baseline and in one scan": with_marker(good, 0xC0, 0xC9),  # arithmetic coding
        "expected a JPEG picture": good[: scan + 4] + b"\1" + good[scan + 5 :],  # the first of several scans
        "in one scan": with_marker(good, 0xDB, 0xD0),  # libjpeg takes what follows for the next segment
        "and in one scan": good[:2] + 1000 * b"\xff\xfe\0\2" + good[2:],
        "are 160x0": good.replace(b"\0\x78\0\xa0", b"\0\0\0\xa0", 1),
        "are 160x15": saved(image[:15]),
        "are 8x1921": saved(np.zeros((1921, 8, 3), np.uint8)),
    }.items():
        with pytest.raises(InputError, match=expected):
            camera_picture(picture)


def test_a_truncated_picture_is_refused_or_shown_but_never_a_crash() -> None:
    whole = jpeg(stripes(1)[0])
    for length in range(0, len(whole), len(whole) // 20):
        try:
            assert camera_picture(whole[:length]).shape == (120, 160, 3)
        except InputError as error:
            assert "camera" in str(error)


def test_pictures_of_any_size_have_five_shapes_and_those_of_usual_cameras_stay_whole() -> None:
    rng = np.random.default_rng(0)
    for width, height in rng.integers(16, 1921, (300, 2)):
        rows, columns = cut(np.zeros((height, width, 1), np.uint8)).shape[:2]
        assert any(columns * down == rows * across for across, down in SHAPES)
        assert columns <= width and rows <= height and (columns + 16 > width or rows + 16 > height)
    for width, height in ((640, 480), (640, 360), (480, 360), (270, 360), (360, 640), (1280, 720), (360, 360)):
        assert cut(np.zeros((height, width, 1), np.uint8)).shape == (height, width, 1)
    ramp = np.indices((90, 200))[1][..., None]
    assert cut(ramp)[0, [0, -1], 0].tolist() == [20, 179], "the middle is what is left"


class Network:
    """Stands for a compiled one."""


def test_many_sizes_leave_few_networks() -> None:
    pool = NetworkPool()
    made: weakref.WeakSet[Network] = weakref.WeakSet()

    def make() -> Network:
        network = Network()
        made.add(network)
        return network

    with Lease(pool) as visitor:
        for size in range(50):
            visitor.take("method", size, make)
            assert len(made) <= 1 + MAX_IDLE
        kept = visitor.take("method", 48, make)
        assert len(made) == 1 + MAX_IDLE and kept is visitor.take("other method", 48, make), "those used last are kept"
        visitor.take("method", 49, make)
        assert visitor.take("other method", 48, make) is kept, "one method left it, the other has not"
        with Lease(pool) as second:
            assert second.take("method", 48, make) is not kept, "one network serves one visitor at a time"
    assert len(made) == MAX_IDLE
