"""The weights of a network in bf16, rounded so that the sum of each filter stays.

OpenVINO rounds each weight to the nearest number of bf16. The errors of a filter add up, and where its inputs share a
sign they shift the features of a whole road by as much as two roads differ: frames of one clip that fp32 calls familiar
were called unfamiliar in bf16. Here the weights nearest to a tie are rounded the other way until the filter's sum is
right (Guo et al. 2022, arXiv 2202.07471, with one term of three: whole filters).
"""

from typing import Any

import numpy as np

FRACTION_BITS = 8
"""Bits of a bf16 number's fraction, the leading one among them."""
FILTERS = {"Convolution": 1, "GroupConvolution": 2}
"""Operations, and the number of first axes of their weights that count the filters."""


def round_to_bf16(model: Any) -> None:
    """Rounds the weights of an OpenVINO model's convolutions in place; those in int8 are no constants of float32."""
    import openvino

    for operation in model.get_ops():
        if not (axes := FILTERS.get(operation.get_type_name())):
            continue
        weights = operation.input_value(1).get_node()
        if weights.get_type_name() != "Constant" or weights.get_element_type() != openvino.Type.f32:
            continue
        values = weights.get_data()
        filters = values.reshape(np.prod(values.shape[:axes]), -1)
        constant = openvino.op.Constant(rounded(filters).reshape(values.shape))
        operation.input(1).replace_source_output(constant.output(0))


def rounded(filters: np.ndarray) -> np.ndarray:
    """(N, n) float32 -> numbers of bf16 whose sums along the rows equal the sums of the exact numbers."""
    exact = filters.astype(np.float64)
    found, steps = nearest(exact)
    lacking = (exact - found).sum(1, keepdims=True)
    gains = (exact - found) * np.sign(lacking) / steps  # 0.5 at a tie, and below 0 where it would round away
    order = np.argsort(-gains, 1)
    gains, steps = np.take_along_axis(gains, order, 1), np.take_along_axis(steps, order, 1)
    turned = (gains > 0) & (np.cumsum(steps, 1) - steps / 2 <= np.abs(lacking))
    np.put_along_axis(changes := np.empty_like(exact), order, turned * steps * np.sign(lacking), 1)
    found += changes
    # What is left is below a step; the smallest weight, whose own steps are finest, takes it.
    smallest = np.where(exact, np.abs(exact), np.inf).argmin(1)[:, None]
    rest = np.take_along_axis(found, smallest, 1) + (exact - found).sum(1, keepdims=True)
    np.put_along_axis(found, smallest, nearest(rest)[0], 1)
    return found.astype(np.float32)


def nearest(exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest numbers of bf16, and the steps between the numbers there."""
    steps = np.ldexp(1.0, np.frexp(exact)[1] - FRACTION_BITS)
    return np.rint(exact / steps) * steps, steps
