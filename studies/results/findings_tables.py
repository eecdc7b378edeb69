"""Tables over many networks at once: how often and by how much one method changes a figure against another."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steadyseg.studies.harness.tables import table
from steadyseg.studies.results.cells import Rows, change, format_row, mark_columns, row_at
from steadyseg.studies.results.matrix import COMPARED, CONTROL, MEMBERS, PRETRAINED, Network, Pretrained, rule_job

Networks = Sequence[Network | Pretrained]
TRAINED: Networks = [*COMPARED, *MEMBERS[1:], CONTROL]
OWN: Networks = [*PRETRAINED, *(one for one in COMPARED if one.recipe == "cpu")]
PAPER: Networks = [*(one for one in COMPARED if one.recipe == "paper"), *MEMBERS[1:]]
RULE = ("changes", "unseen")
"""Protocols of the default rule, which have jobs of their own."""


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same weights and frames, for each of several networks."""

    words: str
    networks: Networks
    protocol: str
    before: str
    after: str
    key: str = "nll"

    def changes(self, rows: Rows, networks: Iterable[Network | Pretrained]) -> list[float]:
        """One for each network that has both rows: percent of NLL, points of shares."""
        found = []
        for network in networks:
            job = rule_job(network) if self.protocol in RULE else network.name
            before, after = (row_at(rows, job, self.protocol, method) for method in (self.before, self.after))
            if before and after:
                was, now = before[self.key], after[self.key]
                found.append(100 * (now / was - 1 if self.key == "nll" else now - was))
        return found


SINGLE, WINDOW, MOTION = "dnn", "vq-dnn", "vq-dnn motion"
DROPOUT = [one for one in COMPARED if one.recipe == "paper" and one.dropout]
COMPARISONS = (
    Comparison("window against single frames, stream", TRAINED, "stream", SINGLE, WINDOW),
    Comparison("the same with one dropout pass", TRAINED, "stream", "bnn-1", "vq-bnn"),
    Comparison("window against single frames, moving stills", COMPARED, "moving-stills", SINGLE, WINDOW),
    Comparison("motion against window, stream", TRAINED, "stream", WINDOW, MOTION),
    Comparison("the same: ECE, points", TRAINED, "stream", WINDOW, MOTION, "ece"),
    Comparison("motion against window, unseen stills, `cpu-*` and `camvid-*`", OWN, "unseen", WINDOW, MOTION),
    Comparison("motion against window, unseen stills, `paper`", PAPER, "unseen", WINDOW, MOTION),
    Comparison("motion against single frames, unseen stills", [*OWN, *PAPER], "unseen", SINGLE, MOTION),
    Comparison(
        "motion against window, stream: change agreement, points",
        [*PRETRAINED, *TRAINED],
        "changes",
        WINDOW,
        MOTION,
        "change_agreement",
    ),
    Comparison("the same on unseen stills", [*PRETRAINED, *TRAINED], "unseen", WINDOW, MOTION, "change_agreement"),
    Comparison("30 dropout passes against one, stream, `paper`", DROPOUT, "stream", "bnn-1", "bnn-30"),
    Comparison("VQ-BNN against 30 passes, stream, `paper`", DROPOUT, "stream", "bnn-30", "vq-bnn"),
)


def findings_table(rows: Rows) -> str:
    """Every comparison: in how many networks the figure is lower, its least and largest change, and the three seeds."""
    lines = []
    for one in COMPARISONS:
        changes = one.changes(rows, one.networks)
        seeds = one.changes(rows, [network for network in MEMBERS if network in one.networks])
        lower = f"{sum(one < 0 for one in changes)} of {len(changes)}"
        has_spread = len(seeds) == len(MEMBERS)
        spread = f"{statistics.fmean(seeds):+.1f} ± {statistics.stdev(seeds):.1f}" if has_spread else ""
        lines.append([one.words, lower, f"{min(changes):+.1f}", f"{max(changes):+.1f}", spread])
    return table(["NLL, %, if not named otherwise", "lower in", "least", "most", "three plain seeds, ± sd"], lines)


def spread_table(rows: Rows) -> str:
    """The three plain trainings of the `paper` recipe on single frames."""
    lines = []
    for protocol in ("stream", "stills"):
        found = [row for network in MEMBERS if (row := row_at(rows, network.name, protocol, SINGLE))]
        nll, accuracy = ([row[key] for row in found] for key in ("nll", "accuracy"))
        cells = [f"{min(nll):.3f} to {max(nll):.3f}", f"{statistics.fmean(nll):.3f} ± {statistics.stdev(nll):.3f}"]
        lines.append([protocol, *cells, f"{100 * min(accuracy):.1f} to {100 * max(accuracy):.1f}"])
    return table(["single frames", "NLL", "mean ± sd", "accuracy, %"], lines)


def neighbours_table(rows: Rows) -> str:
    """Change of NLL by leaving out the train stills next to the stream: as trained, and with class weights undone."""
    whole = rows[Network("paper", True, True).name]["rows"]["stream"]
    control = rows[CONTROL.name]["rows"]["stream"]
    lines = []
    for words, is_undone in (("as trained", False), ("class weights undone", True)):
        names = [name for name in control if name in whole and name.endswith(" undone") == is_undone]
        changes = [100 * (control[name]["nll"] / whole[name]["nll"] - 1) for name in names]
        lower = f"{sum(one < 0 for one in changes)} of {len(changes)}"
        lines.append([words, lower, f"{min(changes):+.1f}", f"{max(changes):+.1f}"])
    return table(["rows", "NLL lower in", "least, %", "most, %"], lines)


EVERY: list[Network | Pretrained] = [*PRETRAINED, *COMPARED, *MEMBERS[1:], CONTROL]


def rule_table(rows: Rows) -> str:
    """The default rule on frames that it was not chosen on."""
    lines = []
    for network in EVERY:
        found = [row_at(rows, rule_job(network), "unseen", name) for name in ("dnn", "vq-dnn", "vq-dnn motion")]
        single, window, motion = found
        if single and window and motion:
            keys = ("nll", "accuracy", "ece", "change_agreement")
            cells = [cell for row in found for cell in format_row(row, keys)]
            lines.append([network.name, *cells, change(motion, single), change(motion, window)])
    titles = ("NLL", "acc", "ECE", "agreement")
    header = [
        "network",
        *mark_columns("single frame", titles),
        *mark_columns("window", titles),
        *mark_columns("motion", titles),
        "motion against single frame: NLL",
        "against window: NLL",
    ]
    return table(header, lines)
