"""Names of choices and checks of ranges that all options share. No torch: the command line reads options for its
help."""

from typing import Literal

from core.errors import InputError

ProbName = Literal["tanh", "relu6", "constant", "sigmoid", "softmax", "bn-tanh", "signed-tanh", "none"]
"""The Prob function of spatial smoothing."""
PaddingName = Literal["published", "same"]
"""published: the k = 2 blur grows the map by one before the pooling; same: it does not."""


def require_ranges(config: object, ranges: dict[str, tuple[float, float]]) -> None:
    """Raises InputError for the first field outside its closed range or NaN; every part of a tuple must lie in the
    range.

    Checked before anything is opened.
    """
    for name, (low, high) in ranges.items():
        value = getattr(config, name)
        if not all(low <= part <= high for part in (value if isinstance(value, tuple) else (value,))):
            raise InputError(f"--{name.replace('_', '-')} must lie in {low:g}..{high:g}, got {value}")
