"""The network's size, the antialiased resize against another library's, and the normalisation."""

import numpy as np
import pytest
import torch
from PIL import Image

from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import Normalize, resize


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
def test_the_height_is_given_and_the_width_keeps_the_aspect(
    frame_height: int, frame_width: int, height: int, expected: tuple[int, int]
) -> None:
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
