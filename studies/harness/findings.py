"""The outcome of a statement that is compared with figures."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The outcome of one statement."""

    figures: str
    holds: int
    of: int
    """Number of comparisons."""
