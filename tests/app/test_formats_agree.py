"""A frame's familiarity is nearly the same in each number format."""

import numpy as np
import pytest
from made.methods import opened

from steadyseg.runtime.networks import cpu_has_bf16
from steadyseg.street.drive import Street

NETWORK, METHOD = "road-mobile", {"mode": "dnn", "backend": "openvino"}


@pytest.mark.slow
@pytest.mark.parametrize("number", ["bf16", "int8"])
def test_a_frame_is_as_familiar_in_each_number_format(number: str) -> None:
    if number == "bf16" and not cpu_has_bf16():
        pytest.skip("this processor does not compute in bf16")
    full, other = (opened(NETWORK, **METHOD, precision=each) for each in ("fp32", number))
    shares: list[list[float | None]] = []
    for frame in Street(seed=7).frames(15):
        shares.append([one.step(frame).familiarity for one in (full, other)])
    first, second = np.array(shares, float).T
    assert np.abs(first - second).max() <= 0.05, (first, second)
