"""The kernel that turns logits into the temporal mean and three maps, and the compilation that all kernels share.

A kernel runs without the GIL and takes blocks of work from a shared counter. So any number of threads may run it at
once on the same arrays. Inner loops are separate functions over contiguous slices: only then does LLVM turn them into
SIMD code. The cache of numba watches the file of a kernel alone, so whatever a kernel calls belongs in its file, except
`take`. Importing this file needs numba.
"""

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config as numba_config
from numba import njit, types
from numba.extending import intrinsic

from steadyseg.core.system.files import cache_file

config: Any = numba_config  # numba sets its attributes at run time
if not config.CACHE_DIR and os.path.expanduser("~") == "~":  # without a home numba would make a folder named ~
    config.CACHE_DIR = str(cache_file("kernels"))

OPTIONS: dict[str, Any] = {"fastmath": {"nnan", "ninf", "nsz", "contract", "arcp"}, "error_model": "numpy"}
"""No reassociation: a sum over classes has the same order on every machine. No exception where 0 divides."""
COUNTER = types.Array(types.int64, 1, "C")
F, I32 = np.float32, np.int32

loop = njit(inline="never", **OPTIONS)
"""Decorator of an inner loop."""


def _take(typing_context: Any, counter: Any) -> Any:
    """Increments counter[0] atomically and returns its earlier value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, context.get_constant(types.int64, 1), "monotonic")

    return types.int64(counter), generate


take: Any = intrinsic(_take)


def compile_kernel(function: Callable[..., None], arguments: tuple[Any, ...]) -> Callable[..., None]:
    """Compiles a kernel for fixed types, so that a read-only array compiles nothing again; cached where possible."""
    try:
        return njit([types.void(*arguments)], cache=True, nogil=True, **OPTIONS)(function)
    except (RuntimeError, OSError):  # no folder can be written to, or the disk is full: each process compiles again
        return njit([types.void(*arguments)], nogil=True, **OPTIONS)(function)


def _as_integer(typing_context: Any, x: Any) -> Any:
    """The int32 with the bits of a float32."""
    return types.int32(types.float32), lambda context, builder, sig, args: builder.bitcast(args[0], ir.IntType(32))


def _as_float(typing_context: Any, x: Any) -> Any:
    """The float32 with the bits of an int32."""
    return types.float32(types.int32), lambda context, builder, sig, args: builder.bitcast(args[0], ir.FloatType())


_bits: Any = intrinsic(_as_integer)
_from_bits: Any = intrinsic(_as_float)


@njit(inline="always")
def _exp(x: Any) -> Any:
    """e^x of a float32 x <= 0, relative error < 3e-7; results below 2^-100 become 2^-100, so that no number is
    denormal."""
    t = max(x * F(1.44269504), F(-100.0))
    shifted = t + F(12582912.0)  # 1.5 * 2^23: the addition rounds to the nearest integer, which the low bits then hold
    r = t - (shifted - F(12582912.0))
    y = F(1.327646061e-3)  # the polynomial with the least relative error for 2^r on -0.5..0.5: 7.5e-8
    y = y * r + F(9.675541244e-3)
    y = y * r + F(5.550713309e-2)
    y = y * r + F(2.402211973e-1)
    y = y * r + F(6.931469670e-1)
    y = y * r + F(1.000000072)
    return _from_bits(_bits(y) + ((_bits(shifted) - I32(0x4B400000)) << I32(23)))


@njit(inline="always")
def _log(x: Any) -> Any:
    """Natural logarithm of a normal float32 x > 0, error < 2e-7 * max(1, |log x|): the polynomial of Cephes' logf."""
    u = _bits(x) - I32(0x3F3504F3)  # sqrt(1/2): the mantissa below lies in sqrt(1/2)..sqrt(2), minus 1
    exponent = F(u >> I32(23))
    m = _from_bits((u & I32(0x7FFFFF)) + I32(0x3F3504F3)) - F(1.0)
    y = F(7.0376836292e-2)
    y = y * m + F(-1.1514610310e-1)
    y = y * m + F(1.1676998740e-1)
    y = y * m + F(-1.2420140846e-1)
    y = y * m + F(1.4249322787e-1)
    y = y * m + F(-1.6668057665e-1)
    y = y * m + F(2.0000714765e-1)
    y = y * m + F(-2.4999993993e-1)
    y = y * m + F(3.3333331174e-1)
    square = m * m
    return y * m * square - F(0.5) * square + m + exponent * F(0.693147181)


@loop
def _raise_to(logits: Any, top: Any) -> None:
    for i in range(top.size):
        top[i] = max(top[i], logits[i])


@loop
def _exponentials(logits: Any, top: Any, inverse_temperature: Any, p: Any, total: Any, moment: Any) -> None:
    for i in range(top.size):
        z = (logits[i] - top[i]) * inverse_temperature
        e = _exp(z)
        p[i] = e
        total[i] += e
        moment[i] += e * z


@loop
def _largest(state: Any, largest: Any) -> None:
    for i in range(largest.size):
        largest[i] = max(largest[i], F(state[i]))


@loop
def _compare(p: Any, state: Any, largest: Any, product: Any, frame: Any, past: Any) -> None:
    """Adds a class to the sums of `core.temporal.keep_alike`; p is the ratio to the largest probability already."""
    for i in range(p.size):
        a = max(p[i], F(0.1))
        a *= a
        a *= a
        a *= a
        a *= a
        b = max(F(state[i]) / largest[i], F(0.1))
        b *= b
        b *= b
        b *= b
        b *= b
        product[i] += a * b
        frame[i] += a * a
        past[i] += b * b


@loop
def _gate(product: Any, frame: Any, past: Any, floor: Any, weight: Any) -> None:
    """Changes the frame's weight 1 / (1 + past) to 1 / (1 + share * past), with the share of the past that stays."""
    for i in range(weight.size):
        share = floor + (F(1.0) - floor) * product[i] / F(math.sqrt(frame[i] * past[i]))
        weight[i] = F(1.0) / (F(1.0) + share * (F(1.0) / weight[i] - F(1.0)))


@loop
def _member(total: Any, moment: Any, member_entropy: Any, weight: Any, first: Any, share: Any, keep: Any) -> None:
    """Adds H[p] = log sum e^z - sum z e^z / sum e^z to the mean entropy; leaves the factor of this member in `total`.

    `weight`: of the frame in the mean, of which each pass has a `share`. `first`: 1 in the first pass, which multiplies
    the past by 1 - weight; else 0.
    """
    for i in range(total.size):
        inverse = F(1.0) / total[i]
        add = weight[i] * share
        keep[i] = F(1.0) - weight[i] * first
        h = max(_log(total[i]) - moment[i] * inverse, F(0.0))
        member_entropy[i] = keep[i] * member_entropy[i] + add * h
        total[i] = add * inverse


@loop
def _mix_logs(logits: Any, top: Any, log_total: Any, rule: Any, state: Any, weight: Any, highest: Any) -> None:
    """Adds the logarithm of the frame's p to the mean of logarithms in `state`, and raises `highest` to it."""
    inverse_temperature, smallest = rule
    least = _log(smallest)
    for i in range(highest.size):
        now = max((logits[i] - top[i]) * inverse_temperature - log_total[i], least)
        mean = weight[i] * now + (F(1.0) - weight[i]) * max(F(state[i]), least)
        state[i] = mean
        highest[i] = max(highest[i], F(mean))


@loop
def _logs(total: Any, out: Any) -> None:
    for i in range(total.size):
        out[i] = _log(total[i])


@loop
def _from_logs(state: Any, highest: Any, p: Any, total: Any) -> None:
    for i in range(p.size):
        p[i] = _exp(F(state[i]) - highest[i])
        total[i] += p[i]


@loop
def _diverge(highest: Any, total: Any, divergence: Any, weight: Any) -> None:
    """Adds -log z to the divergence (`core.temporal.smooth_geometric`); leaves log z in `highest`, 1 / total in
    `total`."""
    for i in range(total.size):
        highest[i] += _log(total[i])
        divergence[i] = (F(1.0) - weight[i]) * divergence[i] - highest[i]
        total[i] = F(1.0) / total[i]


@loop
def _normalise(state: Any, p: Any, log_z: Any, factor: Any, coded: Any) -> None:
    for i in range(p.size):
        state[i] = F(state[i]) - log_z[i]
        p[i] *= factor[i]
        coded[i] = p[i] * F(65535.0) + F(0.5)


@loop
def _mix(state: Any, p: Any, factor: Any, keep: Any, unit: Any, full: Any, half: Any) -> None:
    """Updates the mean: rounded in `state`, exact in `p`. `half`: 0.5 if the cast to the state's type truncates, else
    0."""
    for i in range(factor.size):
        q = keep[i] * (F(state[i]) * unit) + p[i] * factor[i]
        p[i] = q
        state[i] = q * full + half


@loop
def _statistics(q: Any, entropy: Any, best: Any, label: Any, c: Any) -> None:
    for i in range(q.size):
        entropy[i] -= q[i] * _log(max(q[i], F(1e-30)))
        higher = q[i] > best[i]
        best[i] = q[i] if higher else best[i]
        label[i] = c if higher else label[i]


@loop
def _to_bytes(h: Any, member_entropy: Any, best: Any, label: Any, scale: Any, maps: Any, start: Any) -> None:
    labels, confidence, entropy, disagreement = maps
    for i in range(h.size):
        labels[start + i] = label[i]
        confidence[start + i] = I32(min(best[i] * F(255.0) + F(0.5), F(255.0)))
        entropy[start + i] = I32(min(max(h[i] * scale, F(0.0)) + F(0.5), F(255.0)))
        disagreement[start + i] = I32(min(max(h[i] - member_entropy[i], F(0.0)) * scale + F(0.5), F(255.0)))


def _update(
    counter: Any,
    logits: Any,
    inverse_temperature: Any,
    state: Any,
    member_entropy: Any,
    coding: Any,
    weight: Any,
    floor: Any,
    smallest: Any,
    coded: Any,
    turn: Any,
    block: int,
    emit: bool,
    scale: Any,
    maps: Any,
) -> None:
    """Adds logits (K, n) to state (K, n) and member_entropy (n,), by blocks of pixels that fit the cache, and fills 4
    maps (n,). `weight` (n,) is the frame's weight in the mean; floor < 1 raises it where the past predicts another
    class (one pass a frame). With `smallest` > 0, the least probability, the mean is geometric: `state` has logarithms
    (one pass, float32), `coded` (K, n) gets 65535 times the mean, and member_entropy is the divergence. `turn` is (1 in
    the frame's first pass, else 0; 1 / number of passes).
    """
    classes, n = logits.shape
    full, half = coding
    first, share = turn
    unit = F(1.0) / full
    planes = np.empty((classes, block), np.float32)
    rows = np.empty((7, block), np.float32)
    labels = np.empty(block, np.int32)
    while True:
        start = take(counter) * block
        if start >= n:
            break
        stop = min(n, start + block)
        m = stop - start
        top, total, moment, entropy, best, keep, other = (
            rows[0, :m],
            rows[1, :m],
            rows[2, :m],
            rows[3, :m],
            rows[4, :m],
            rows[5, :m],
            rows[6, :m],
        )
        top[:], total[:], moment[:] = F(-3e38), F(0.0), F(0.0)
        for c in range(classes):
            _raise_to(logits[c, start:stop], top)
        for c in range(classes):
            _exponentials(logits[c, start:stop], top, inverse_temperature, planes[c, :m], total, moment)
        if floor < F(1.0):
            entropy[:], best[:], keep[:], other[:] = F(0.0), F(0.0), F(0.0), F(1e-6) * full
            for c in range(classes):
                _largest(state[c, start:stop], other)
            for c in range(classes):
                _compare(planes[c, :m], state[c, start:stop], other, entropy, best, keep)
            _gate(entropy, best, keep, floor, weight[start:stop])
        if smallest > F(0.0):
            best[:] = F(-3e38)
            _logs(total, moment)
            rule = (inverse_temperature, smallest)
            for c in range(classes):
                before = state[c, start:stop]
                _mix_logs(logits[c, start:stop], top, moment, rule, before, weight[start:stop], best)
            total[:] = F(0.0)
            for c in range(classes):
                _from_logs(state[c, start:stop], best, planes[c, :m], total)
            _diverge(best, total, member_entropy[start:stop], weight[start:stop])
            for c in range(classes):
                _normalise(state[c, start:stop], planes[c, :m], best, total, coded[c, start:stop])
        else:
            _member(total, moment, member_entropy[start:stop], weight[start:stop], first, share, keep)
            for c in range(classes):
                _mix(state[c, start:stop], planes[c, :m], total, keep, unit, full, half)
        if emit:
            entropy[:], best[:] = F(0.0), F(-1.0)
            for c in range(classes):
                _statistics(planes[c, :m], entropy, best, labels[:m], I32(c))
            other[:] = member_entropy[start:stop]
            if smallest > F(0.0):
                other[:] = entropy - other
            _to_bytes(entropy, other, best, labels[:m], scale, maps, start)


@loop
def _fade(levels: Any, lost: Any, even: Any, p: Any) -> None:
    """Mixes a share `lost` of equal probabilities into fixed point, rounded in `levels`, exact in `p`."""
    for i in range(p.size):
        p[i] = (F(1.0) - lost[i]) * (F(levels[i]) * F(1 / 65535)) + lost[i] * even
        levels[i] = p[i] * F(65535.0) + F(0.5)


def _carry(counter: Any, levels: Any, lost: Any, block: int, scale: Any, maps: Any) -> None:
    """Fades the mean `levels` (K, n) by `lost` (n,), fills label, confidence and entropy; disagreement is 0."""
    classes, n = levels.shape
    planes = np.empty((classes, block), np.float32)
    rows = np.empty((2, block), np.float32)
    labels = np.empty(block, np.int32)
    while True:
        start = take(counter) * block
        if start >= n:
            break
        m = min(n, start + block) - start
        entropy, best = rows[0, :m], rows[1, :m]
        entropy[:], best[:] = F(0.0), F(-1.0)
        for c in range(classes):
            _fade(levels[c, start : start + m], lost[start : start + m], F(1.0) / F(classes), planes[c, :m])
            _statistics(planes[c, :m], entropy, best, labels[:m], I32(c))
        _to_bytes(entropy, entropy, best, labels[:m], scale, maps, start)


@functools.cache
def carry_kernel() -> Callable[..., None]:
    """`_carry`; compiled here, or read from disk."""
    maps = types.UniTuple(types.Array(types.uint8, 1, "C"), 4)
    levels, lost = types.Array(types.uint16, 2, "C"), types.Array(types.float32, 1, "C")
    return compile_kernel(_carry, (COUNTER, levels, lost, types.int64, types.float32, maps))


@functools.cache
def update_kernel(state_type: str) -> Callable[..., None]:
    """`_update` for a state of "uint16" or "float32"; compiled here, or read from disk."""
    logits = types.Array(types.float32, 2, "C", readonly=True)
    state = types.Array(getattr(types, state_type), 2, "C")
    member_entropy = weight = types.Array(types.float32, 1, "C")
    maps, coded = types.UniTuple(types.Array(types.uint8, 1, "C"), 4), types.Array(types.uint16, 2, "C")
    real, pair, whole, truth = types.float32, types.UniTuple(types.float32, 2), types.int64, types.boolean
    means = (COUNTER, logits, real, state, member_entropy, pair, weight)
    return compile_kernel(_update, (*means, real, real, coded, pair, whole, truth, real, maps))
