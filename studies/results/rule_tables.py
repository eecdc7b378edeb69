"""The tables of the default rule: where its choice did not look, how predictions change, and against the published
window."""

from steadyseg.studies.harness.tables import table
from steadyseg.studies.results.cells import TITLES_SHOWN, Rows, change, format_row, mark_columns, row_at
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


def changes_table(rows: Rows) -> str:
    """Table of the consistency of predictions along the stream, and of their changes' agreement with the labels."""
    keys = ("nll", "consistency", "label_consistency", "change_agreement", "change_agreement_frozen")
    lines = [
        [network.name, name, *format_row(found, keys)]
        for network in EVERY
        for name in ("dnn", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion")
        if (found := row_at(rows, rule_job(network), "changes", name))
    ]
    header = ["network", "row", "NLL", "consistency", "of the labels", "change agreement", "of a frozen prediction"]
    return table(header, lines)


def beyond_table(rows: Rows) -> str:
    """The plain rule against the mean that follows motion."""
    lines = []
    for network in COMPARED:
        for protocol in ("stream", "moving-stills"):
            for method in ("dnn", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion"):
                found = row_at(rows, network.name, protocol, method)
                if found:
                    lines.append([network.name, protocol, method, *format_row(found), *format_row(found, ["cec"])])
    header = ["network", "protocol", "row", *TITLES_SHOWN, "CEC"]
    return table(header, lines)
