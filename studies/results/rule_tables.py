"""The tables of the default rule: where its choice did not look, how predictions change, and against the published
window."""

from studies.harness.document import section, table
from studies.results.cells import TITLES_SHOWN, Rows, change, format_row, mark_columns, row_at
from studies.results.figures import figure
from studies.results.matrix import COMPARED, CONTROL, MEMBERS, PRETRAINED, Network, Pretrained, rule_job

EVERY: list[Network | Pretrained] = [*PRETRAINED, *COMPARED, *MEMBERS[1:], CONTROL]


def labels_note(rows: Rows) -> str:
    """The consistency of the true labels, beside which that of predictions is read; the same for every network."""
    if rule_job(PRETRAINED[0]) not in rows:
        return ""
    stream, clips = (figure(rows, f"label_consistency */{protocol}/dnn") for protocol in ("changes", "unseen"))
    return (
        f" The true labels themselves have consistency {stream} % on the stream and {clips} % on (98 of the) "
        f"moving stills."
    )


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
    words = (
        "98 moving stills of test: those that are not in `seg/checkpoints/camvid-test-49.txt`. Dropout off, "
        "temperature 1. "
        "`agreement`: change agreement (next table)."
    )
    return section("The default rule on stills that its choice did not see", words, table(header, lines))


def changes_table(rows: Rows) -> str:
    """How predictions change along the stream, and whether the labels change there too."""
    keys = ("nll", "consistency", "label_consistency", "change_agreement", "change_agreement_frozen")
    lines = [
        [network.name, name, *format_row(found, keys)]
        for network in EVERY
        for name in ("dnn", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion")
        if (found := row_at(rows, rule_job(network), "changes", name))
    ]
    header = ["network", "row", "NLL", "consistency", "of the labels", "change agreement", "of a frozen prediction"]
    words = (
        "Val stream, temperature 1, percent but for NLL. *Consistency*: share of pixels that keep their "
        "predicted class from "
        "frame to frame; *of the labels*: the same of the true labels. *Change agreement*: share of pixels, "
        "void in neither "
        "frame, where prediction and label both change or both stay; *of a frozen prediction*: what a "
        "picture that never "
        "changes would score. Not measured: rows of many passes, calibrated rows, rows with class weights "
        "undone, the ensemble."
    )
    return section("Does a prediction change where the truth does", words, table(header, lines))


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
    words = (
        "`vq-dnn`, `vq-bnn`: the published window (K = 5, tau = 1.25). `motion`: the recursion with tau = 8, "
        "carried along the "
        "motion between frames, which was chosen on this stream. Consistency compares the same pixel of "
        "neighbouring frames, "
        "so what really moves lowers it."
    )
    return section("Smoothing along the motion", words + labels_note(rows), table(header, lines))
