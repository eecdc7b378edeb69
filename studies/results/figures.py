"""Figures named in the sentences of findings.md, from the measured rows.

{nll paper-plain-0/stream/dnn}                      a value: NLL with three digits, all else in percent
{nll paper-plain-0/stream/dnn > =/=/vq-dnn}         a change: of NLL in percent, of all else in points (= repeats)
{nll paper-*!paper-mc-0/stream/dnn}                 least to most over the networks, methods that match (! leaves out)
{spread nll paper-plain-?/stream/dnn > =/=/vq-dnn}  mean ± standard deviation
{count<0 nll */stream/dnn > =/=/vq-dnn}             in how many of them: "7 of 8"
{conformal.lac.coverage ...}, {iou.Pole ...}        what lies deeper; {error_share ...} is of two keys
"""

import re
import statistics
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from core.classes import CAMVID
from core.errors import InputError
from studies.harness.document import span

Rows = dict[str, Any]
RULE_PROTOCOLS = ("changes", "unseen")
TITLES = ("stream", "moving-stills", "stills", *RULE_PROTOCOLS)


def figure(rows: Rows, name: str) -> str:
    """The text of one {name}; a name that meets no row is an error."""
    found = re.fullmatch(r"(?:(spread|count[<>][-.\d]+) )?(\S+) (.+?)(?: > (.+))?", name)
    if not found:
        raise InputError(f"findings.md: {{{name}}} names no figure")
    how, key, base, other = found.groups()
    values = []
    for place, row in matching(rows, base):
        before, after = value_of(row, key), value_of(rows_at(rows, place, other), key) if other else None
        if before is not None and (after is not None or not other):
            values.append(before if after is None else change(key, before, after))
    if len(values) < (2 if how == "spread" else 1):
        raise InputError(f"findings.md: {{{name}}} meets no measured row")
    if how and how.startswith("count"):
        limit = float(how[6:])
        return f"{sum(value < limit if how[5] == '<' else value > limit for value in values)} of {len(values)}"
    form, scale, unit = "+.1f" if other else ".1f", 100.0, " %" if other and key == "nll" else ""
    if key.endswith("set_size") or (key == "nll" and not other):
        form, scale = ".3f", 1.0
    if how == "spread":
        return (
            f"{scale * statistics.fmean(values):{form}} ± "
            f"{scale * statistics.stdev(values):{form.removeprefix('+')}}{unit}"
        )
    return span([f"{scale * value:{form}}" for value in values]) + unit


def matching(rows: Rows, address: str) -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
    """(network, protocol, method) and row of all that NETWORK/PROTOCOL/METHOD matches."""
    networks, protocols, methods = address.split("/")
    for job in rows:
        network = job.removesuffix(" default rule")
        for protocol, found in rows[job]["rows"].items():
            if protocol in TITLES and matches(protocol, protocols) and matches(network, networks):
                yield from (
                    ((network, protocol, method), row) for method, row in found.items() if matches(method, methods)
                )


def matches(name: str, pattern: str) -> bool:
    wanted, *others = pattern.split("!")
    return any(fnmatchcase(name, one) for one in wanted.split("|")) and not any(fnmatchcase(name, o) for o in others)


def rows_at(rows: Rows, place: tuple[str, str, str], address: str) -> dict[str, Any]:
    """The one row at an address whose = stand for those of `place`; empty where there is none."""
    pairs = zip(address.split("/"), place, strict=True)
    network, protocol, method = (mine if given == "=" else given for given, mine in pairs)
    job = f"{network} default rule" if protocol in RULE_PROTOCOLS else network
    return dict(rows[job]["rows"].get(protocol, {}).get(method, {}))


def value_of(row: dict[str, Any], key: str) -> float | None:
    """None where the row has no such figure."""
    if key == "error_share":
        return row["error_recall_10"] / row["error_recall_10_ceiling"] if "error_recall_10" in row else None
    value: Any = row
    for part in key.split("."):
        value = value[CAMVID.names.index(part)] if isinstance(value, list) else value.get(part)
        if value is None:
            return None
    return float(value)


def change(key: str, before: float, after: float) -> float:
    """Of NLL as a share, of all else as a difference."""
    return after / before - 1.0 if key == "nll" else after - before
