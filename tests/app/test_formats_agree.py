"""A frame's familiarity is nearly the same in each number format, on the drawn street and on a motorway."""

import numpy as np
import pytest
from made.methods import opened

from steadyseg.app.sources.open_source import open_source
from steadyseg.runtime.networks import cpu_has_bf16

NETWORK, METHOD = "road-mobile", {"mode": "dnn", "backend": "openvino"}


@pytest.mark.slow
@pytest.mark.parametrize("number", ["bf16", "int8"])
@pytest.mark.parametrize(("source", "step"), [("street:7", 3), ("video/udacity_solidWhiteRight.mp4", 10)])
def test_a_frame_is_as_familiar_in_each_number_format(number, source, step, request):
    if number == "bf16" and not cpu_has_bf16():
        pytest.skip("this processor does not compute in bf16")
    full, other = (opened(NETWORK, **METHOD, precision=each) for each in ("fp32", number))
    shares: list[list[float | None]] = []
    if "." in source:
        source = str(request.getfixturevalue("data_dir") / source)
    with open_source(source) as frames:
        for frame in frames:
            if frame.index >= 20 * step:
                break
            if frame.index % step == 0:
                shares.append([one.step(frame).familiarity for one in (full, other)])
    first, second = np.array(shares, float).T
    assert len(first) >= 15 and np.abs(first - second).max() <= 0.05, (first, second)
