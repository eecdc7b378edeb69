"""Common corruptions: 19 ways in which a picture gets worse, in five severities each (arXiv 1903.12261)."""

import difflib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from PIL import Image

from steadyseg.core.errors import InputError

BENCHMARK_CORRUPTIONS = tuple(
    (
        "gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur snow frost fog "
        "brightness contrast elastic_transform pixelate jpeg_compression"
    ).split()
)
"""The mean corruption error is a mean over these 15 types."""
TUNING_CORRUPTIONS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
"""The four types for tuning; no mean counts them."""
SEVERITIES = (1, 2, 3, 4, 5)
SMALLEST_SIDE = 32
"""Pixels; the library's blur kernels and textures do not fit into less."""

OWN_SEED = ("impulse_noise", "glass_blur")
"""Types that take a seed; other types draw from NumPy's global generator."""


def corrupt(image: np.ndarray, name: str, severity: int, seed: int = 0, index: int = 0) -> np.ndarray:
    """(H, W, 3) uint8 RGB, both sides 32 or more -> its corrupted copy, of the same shape.

    Depends on (seed, index, name, severity) alone: `index` numbers the pictures of a set. The package
    imagecorruptions-imaug gives the types and severities of ImageNet-C. CIFAR-C's severities are milder and come as
    files (`studies.robustness.measures.published_images`). Not for several threads at once: NumPy's global generator is
    seeded and put back. Raises InputError for another shape or dtype, an unknown type, a severity outside 1..5.
    """
    from steadyseg.core.seeds import keep_generators  # torch, which the help of the study `robustness` does without

    require_known(name, (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS), "corruption")
    if severity not in SEVERITIES:
        raise InputError(f"the severity of a corruption must be 1, 2, 3, 4 or 5, got {severity!r}")
    severity = int(severity)
    require_picture(image, SMALLEST_SIDE)
    function = _library()[name]
    place = (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS).index(name)
    drawn = int(np.random.SeedSequence([seed % 2**64, index, place, severity]).generate_state(1)[0])  # 32 bits
    with keep_generators(), np.errstate(invalid="ignore"):
        np.random.seed(drawn)
        own = {"seed": drawn} if name in OWN_SEED else {}
        worse = np.asarray(function(Image.fromarray(image), severity, **own))
    if name == "spatter":  # where no drop falls (2 % of severity 1 at 32x32) the library divides 0 by 0
        worse = np.where(np.isnan(worse), image, worse)
    return worse.astype(np.uint8)


def require_known(name: str, known: Sequence[str], what: str) -> None:
    """Raises InputError with the most similar names and all known names if `name` is unknown."""
    if name not in known:
        near = difflib.get_close_matches(str(name).lower().replace("-", "_"), known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"unknown {what} {name!r}; {hint}There are {', '.join(known)}")


def require_picture(image: np.ndarray, smallest_side: int = 1) -> None:
    """Raises InputError unless the picture is (H, W, 3) uint8 and large enough."""
    if not isinstance(image, np.ndarray) or image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        kind = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise InputError(f"a picture is a uint8 array (height, width, 3), RGB, got {kind}")
    if min(image.shape[:2]) < smallest_side:
        raise InputError(
            f"a picture must be {smallest_side}x{smallest_side} pixels or more, got {image.shape[1]}x{image.shape[0]}: "
            "enlarge it first"
        )


def _library() -> dict[str, Callable[..., Any]]:
    try:
        from imagecorruptions import corruption_dict
    except ImportError as error:
        raise InputError(
            f"corruptions need imagecorruptions-imaug ({error}): pip install '.[calibrate]' in SteadySeg's clone"
        ) from error
    functions: dict[str, Callable[..., Any]] = corruption_dict
    _cache_compiled(functions["glass_blur"])
    return functions


def _cache_compiled(glass_blur: Callable[..., Any]) -> None:
    """Lets numba keep glass_blur's loop on disk, which the library compiles anew in every process (twice 4 s)."""
    loop = glass_blur.__globals__.get("_shuffle_pixels_njit_glass_blur")
    if loop is not None and not loop.signatures:  # nothing is compiled yet
        with suppress(RuntimeError, OSError):  # no folder can be written to: compiled anew
            loop.enable_caching()
