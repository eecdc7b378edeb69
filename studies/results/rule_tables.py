"""The tables of the default rule: where its choice did not look, how predictions change, and against the published
window."""

from steadyseg.studies.harness.tables import table
from steadyseg.studies.results.cells import Rows, change, format_row, mark_columns, row_at
from steadyseg.studies.results.matrix import COMPARED, CONTROL, MEMBERS, PRETRAINED, Network, Pretrained, rule_job

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
