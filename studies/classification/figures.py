"""Figures named in the sentences of findings.md, from docs/studies/classification/record.json.

{nll resnet18-plain-0/off} {ece resnet18-mc-?/50}     dropout off, or 50 passes; least to most over what matches
{change nll both (N = 50)} {seeds nll both (N = 50)}  an effect and its 95 % interval; of each seed
{share both (N = 50)}                                 the change of NLL as a share of what it starts from
"""

import statistics
from fnmatch import fnmatchcase
from typing import Any

from studies.classification.effects import EFFECTS, changes
from studies.harness.document import span

Rows = dict[str, Any]
"""By network, what was measured."""


def figure(rows: Rows, name: str) -> str:
    """The text of one {name}."""
    how, rest = name.split(" ", 1)
    if how == "share":
        before, _ = EFFECTS[rest]
        base = statistics.fmean(float(side["nll"].mean()) for seed in (0, 1) if (side := before.of_seed(rows, seed)))
        return f"{100 * changes(rows, *EFFECTS[rest])['nll'].mean / base:+.0f} %"
    if how in ("change", "seeds"):
        key, title = rest.split(" ", 1)
        found = changes(rows, *EFFECTS[title])["nll" if key == "nll" else "right"]
        scale, form = (1, "+.3f") if key == "nll" else (100, "+.1f")
        if how == "seeds":
            return " and ".join(f"{scale * mean:{form}}" for mean in found.by_seed)
        return f"{scale * found.mean:{form}} ± {scale * found.half:{form.removeprefix('+')}}"
    network, passes = rest.split("/")
    values = [row_of(found, passes)[how] for one, found in rows.items() if fnmatchcase(one, network)]
    return span([f"{value:.3f}" if how == "nll" else f"{100 * value:.1f}" for value in values])


def row_of(found: dict[str, Any], passes: str) -> dict[str, Any]:
    """Of `off`, or a number of passes."""
    return dict(found["off"] if passes == "off" else next(row for row in found["passes"] if row["n"] == int(passes)))
