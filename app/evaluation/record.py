"""The record of an evaluation: its common part (model, method, data and machine), and how its parts are told."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from steadyseg.app.console import Console, print_table
from steadyseg.app.evaluation.flags import EvaluateJob
from steadyseg.core.method import Method
from steadyseg.core.reference import NOVEL

if TYPE_CHECKING:
    from steadyseg.app.classifiers import OpenClassifier
    from steadyseg.core.segmenter import Segmenter

FRAME_KEYS = ("novel_share", "familiarity_p50", "expected_accuracy_gap", "expected_accuracy_error")
"""Keys of the familiarity metrics of a checkpoint with statistics of its training domain."""
FIT_KEYS = ("data", "split", "protocol", "frame_list_hash")


def describe_run(
    job: EvaluateJob, ran: "Segmenter | OpenClassifier", method: Method, data: str, split: str | None
) -> dict[str, Any]:
    """Model, method and data of a measurement, complete enough to repeat it."""
    return {
        "model": Path(job.model).name,
        "members": [Path(member).name for member in job.members],
        "data": data,
        "split": split,
        "protocol": job.protocol,
        **asdict(method),
        "seed": job.seed,
        "backend": ran.backend,
        "device": ran.device,
        "torch": torch.__version__,
    }


def familiarity_record(shares: Sequence[float]) -> dict[str, float]:
    """Share of novel frames or pictures (familiarity at most 5 %), and the median of their familiarity."""
    novel = sum(share <= NOVEL for share in shares) / len(shares)
    return {"novel_share": novel, "familiarity_p50": statistics.median(shares)}


def note_fit(
    fitted: Mapping[str, Any], method: Method, data: str, split: str | None, console: Console
) -> dict[str, Any] | None:
    """Returns the data of the fit of the temperature in use (None without a fit). Prints a note if the same data is
    evaluated now.

    Args:
        fitted: The checkpoint's calibration of `method`, empty if not in use.
        data: Name of the evaluated data.
        split: Split of the data, or None.
    """
    fit = {key: fitted[key] for key in FIT_KEYS if key in fitted}
    if fit and (fit.get("data"), fit.get("split")) == (data, split):
        console.print(
            f"note: the temperature of {method} was fitted on this split: these figures flatter it (--calibrated off "
            "omits it)",
            soft_wrap=True,
        )
    return fit or None


def describe_familiarity(about: Mapping[str, Any]) -> str:
    """Describes the fit in one line: the share of held-out pictures with the verdict novel at 5 %, and its interval."""
    low, high = about["novel_interval"]
    share = about["novel"] / about["held_out_pictures"]
    note = f"; {about['note']}" if about["note"] else ""
    return (
        f"familiarity: fitted on {about['frames']} pictures; of {about['held_out_pictures']} held-out views "
        f"{share:.1%} are novel (95 % interval, were they independent: {low:.1%} to {high:.1%}){note}"
    )


def fit_rows(record: Mapping[str, Any]) -> dict[str, str]:
    """The values of a calibration by name, as the terminal shows them."""
    conformal = record["conformal"]
    rows = {
        "temperature": f"{record['temperature']:.3f}",
        "NLL before, after": f"{record['nll_before']:.4f}, {record['nll_after']:.4f}",
        "ECE before, after": f"{record['ece_before']:.4f}, {record['ece_after']:.4f}",
        "labels that flip": f"{record['flips']:.3%}",
        f"prediction sets: threshold for {conformal['coverage']:.0%}": f"{conformal['lac']:.4f}",
    }
    if risk := record.get("class_risk"):
        rows |= {
            f"{risk['class']}: threshold for {risk['level']:.0%} missed": f"{risk['threshold']:.4f}",
            f"{risk['class']}: missed here": f"{risk['risk']:.2%} ({risk['images']} images)",
            f"{risk['class']}: pixels reported": f"{risk['reported_share']:.2%}",
        }
    return rows


def print_sets(record: Mapping[str, Any], unit: str, columns: Mapping[str, str]) -> None:
    """Prints the coverage of the prediction sets; `columns`: keys of the record by the headings of the table."""
    row = ("LAC", *map(record["lac"].get, columns.values()))
    print_table(f"prediction sets for {record['coverage_asked']:.0%} of the {unit}", ("kind", *columns), [row])
