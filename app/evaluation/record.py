"""The part that the JSON of all measurements has: model, method, data and machine."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import torch

from app.console import Console
from app.evaluation.flags import EvaluateJob
from core.method import Method
from core.reference import NOVEL


class RunInfo(Protocol):
    """Properties of the measured segmenter or classifier that the record names."""

    @property
    def executor(self) -> str: ...
    @property
    def device(self) -> str: ...


def describe_run(job: EvaluateJob, ran: RunInfo, method: Method, data: str, split: str | None) -> dict[str, Any]:
    """Model, method and data of a measurement, complete enough to repeat it."""
    return {
        "model": Path(job.model).name,
        "members": [Path(member).name for member in job.members],
        "data": data,
        "split": split,
        "protocol": job.protocol,
        **asdict(method),
        "seed": job.seed,
        "executor": ran.executor,
        "device": ran.device,
        "torch": torch.__version__,
    }


FRAME_KEYS = ("novel_share", "novelty_p50", "expected_accuracy_gap", "expected_accuracy_error")
"""Keys of the novelty figures of a checkpoint with statistics of its training domain."""


def novelty_record(shares: Sequence[float]) -> dict[str, float]:
    """Share of the frames or pictures that are novel (at most 5 %), and the median of their novelty."""
    novel = sum(share <= NOVEL for share in shares) / len(shares)
    return {"novel_share": novel, "novelty_p50": statistics.median(shares)}


FIT_KEYS = ("data", "split", "protocol", "frame_list_hash")


def note_fit(
    fitted: Mapping[str, Any], method: Method, data: str, split: str | None, console: Console
) -> dict[str, Any] | None:
    """Returns the data that the temperature in use was fitted on (None without one), and prints a note where they are
    the data evaluated now.

    Args:
        fitted: The checkpoint's calibration of `method`, empty where it is not in use.
        data: Name of the data that is evaluated.
        split: Its split; None where it has none.
    """
    fit = {key: fitted[key] for key in FIT_KEYS if key in fitted}
    if fit and (fit.get("data"), fit.get("split")) == (data, split):
        console.print(
            f"note: the temperature of {method} was fitted on this split: these figures flatter it (--calibrated off "
            "omits it)",
            soft_wrap=True,
        )
    return fit or None


def describe_novelty(about: Mapping[str, Any]) -> str:
    """Describes the fit in one line: the share of held-out pictures that are called novel at 5 %, with its interval."""
    low, high = about["alarm_rate_interval"]
    share = about["alarms"] / about["held_out_pictures"]
    note = f"; {about['note']}" if about["note"] else ""
    return (
        f"novelty: {about['frames']} training pictures; of {about['held_out_pictures']} held-out views "
        f"{share:.1%} are "
        f"novel (95 % interval, were they independent: {low:.1%} to {high:.1%}){note}"
    )
