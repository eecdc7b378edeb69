"""The resize without torch gives torch's bytes."""

import numpy as np
import pytest
import torch

from steadyseg.core import preprocess
from steadyseg.runtime.kernels.resize import nearest, resize_frame

SIZES = [
    ((720, 1280), (360, 640)),
    ((1920, 1080), (360, 192)),
    ((361, 643), (360, 640)),
    ((37, 41), (360, 384)),
    ((363, 480), (360, 480)),
    ((360, 480), (360, 480)),
    ((900, 70), (32, 32)),
]


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"), reason="torch's resize differs without AVX2"
)
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_the_bytes_are_torchs(before: tuple[int, int], after: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (*before, 3), np.uint8)
    for image in (noise, np.full_like(noise, 255), noise[::-1, ::-1]):
        pixels = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
        wanted = preprocess.resize(pixels, after).permute(0, 2, 3, 1).numpy()
        np.testing.assert_array_equal(resize_frame(image, after), wanted)


@pytest.mark.parametrize(("before", "after"), SIZES)
def test_labels_are_enlarged_as_torch_does(before: tuple[int, int], after: tuple[int, int]) -> None:
    label = np.random.default_rng(0).integers(0, 11, after, np.uint8)
    wanted = preprocess.nearest(torch.from_numpy(label)[None], before)[0].numpy()
    np.testing.assert_array_equal(nearest(label, before), wanted)
