"""Progress and summary of `steadyseg calibrate --novelty`."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.progress import track

from app.console import Console


def watch(items: Iterable[Any], title: str) -> Iterable[Any]:
    return track(items, title, console=Console(stderr=True))


def describe_novelty(about: Mapping[str, Any]) -> str:
    """Describes the fit in one line: the share of held-out pictures that are called novel at 5 %, with its interval."""
    low, high = about["alarm_rate_interval"]
    share = about["alarms"] / about["held_back_pictures"]
    note = f"; {about['note']}" if about["note"] else ""
    return (
        f"novelty: {about['frames']} training pictures; of {about['held_back_pictures']} held-back views "
        f"{share:.1%} are "
        f"novel (95 % interval, were they independent: {low:.1%} to {high:.1%}){note}"
    )
