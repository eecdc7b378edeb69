"""The learning rate of the AdamW rows: that of the short trainings with the best mean held-out accuracy."""

from collections.abc import Callable
from statistics import fmean

from steadyseg.studies.transformers.rows import PILOTS, Row


def chosen_rate(accuracy: Callable[[Row], float | None]) -> float | None:
    """Returns the rate, or None until all pilots are done.

    `accuracy` returns that of a finished training on the held-out pictures, else None.
    """
    means = {}
    for rate, rows in PILOTS.items():
        found = [accuracy(row) for row in rows]
        done = [value for value in found if value is not None]
        if len(done) < len(rows):
            return None
        means[rate] = fmean(done)
    return max(means, key=lambda rate: means[rate])
