"""What `steadyseg evaluate` says of the labelled images that a temperature was fitted on."""

from typing import Any

from rich.console import Console

FIT_KEYS = ("data", "split", "protocol", "frame_list_hash")


def noted_fit(
    fitted: dict[str, Any], mode: str, data: str, split: str | None, console: Console
) -> dict[str, Any] | None:
    """The fit set of the temperature in use (None where none is), with a note where it is what is evaluated now.

    Args:
        fitted: The checkpoint's calibration of `mode`, empty where it is not in use.
        data: Name of the data that is evaluated.
        split: Its split; None where it has none.
    """
    fit = {key: fitted[key] for key in FIT_KEYS if key in fitted}
    if fit and (fit.get("data"), fit.get("split")) == (data, split):
        console.print(
            f"note: the temperature of {mode} was fitted on this split: these figures flatter it (--calibrated off leaves "
            "it away)", soft_wrap=True,
        )  # fmt: skip
    return fit or None
