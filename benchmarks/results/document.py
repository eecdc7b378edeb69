"""docs/results.md: every table is made from the measured rows, and so are the figures in the sentences of findings.md."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.document import fill, section, table
from benchmarks.results.figures import figure
from benchmarks.results.matrix import COMPARED, CONTROL, MEMBERS, PRETRAINED, RECIPES, Network, rule_job
from benchmarks.results.plots import write_plots
from benchmarks.results.published import (
    ENSEMBLES,
    PUBLISHED_THROUGHPUT,
    SPATIAL_TABLE,
    VQBNN_KEYS,
    VQBNN_TABLE,
    PublishedRow,
)
from benchmarks.results.rows import FITTED_ON
from core.atomic_file import write_whole
from core.classes import CAMVID

Rows = dict[str, Any]
"""docs/results.json: job -> {"rows": {protocol: {method: figures}}, ...}."""
ABSENT = "-"
SHOWN = ("nll", "accuracy", "miou", "ece", "consistency")
TITLES_SHOWN = ("NLL", "acc", "mIoU", "ECE", "cons")
THROUGHPUT_ROWS = {
    "bare_plain": "the plain network alone", "bare": "with spatial smoothing", "dnn": "one pass, all maps",
    "vq_dnn": "VQ-DNN, all maps", "vq_dnn_motion": "VQ-DNN along the motion, all maps", "vq_bnn": "VQ-BNN, all maps",
    "mc_30": "MC dropout, 30 passes, all maps",
}  # fmt: skip
EFFECTS: dict[str, tuple[tuple[bool, bool, str], tuple[bool, bool, str]]] = {
    "temporal smoothing, plain network": ((False, False, "dnn"), (False, False, "vq-dnn")),
    "temporal smoothing, one dropout pass": ((True, False, "bnn-1"), (True, False, "vq-bnn")),
    "temporal smoothing, one dropout pass, spatial smoothing": ((True, True, "bnn-1"), (True, True, "vq-bnn")),
    "30 dropout passes instead of one": ((True, False, "bnn-1"), (True, False, "bnn-30")),
    "VQ-BNN (one pass) instead of 30 passes": ((True, False, "bnn-30"), (True, False, "vq-bnn")),
    "VQ-BNN instead of 30 passes, both with spatial smoothing": ((True, True, "bnn-30"), (True, True, "vq-bnn")),
    "spatial smoothing, one dropout pass": ((True, False, "bnn-1"), (True, True, "bnn-1")),
    "spatial smoothing, 30 dropout passes": ((True, False, "bnn-30"), (True, True, "bnn-30")),
    "spatial smoothing, VQ-BNN": ((True, False, "vq-bnn"), (True, True, "vq-bnn")),
    "spatial smoothing, no dropout": ((False, False, "dnn"), (False, True, "dnn")),
    "dropout, 30 passes": ((False, False, "dnn"), (True, False, "bnn-30")),
    "all three, one pass": ((False, False, "dnn"), (True, True, "vq-bnn")),
}
"""What the papers say smoothing and dropout do: from a row to a row, each (dropout, spatial smoothing, method)."""
TITLES = {"stream": "Stream (val)", "moving-stills": "Moving stills (test)", "stills": "Stills (test)"}
"""The protocols that all rows are of."""


def write_document(rows: Rows, docs: Path, strips: dict[str, str]) -> None:
    """Writes docs/results.md and its pictures; `strips` are some that are there already, {title: file name}."""
    pictures = write_plots(rows, docs) | strips
    write_whole(docs / "results.md", document(rows, docs, pictures).encode())


def document(rows: Rows, docs: Path, pictures: dict[str, str]) -> str:
    """The whole text; `docs` holds what other benchmarks measured."""
    findings = (Path(__file__).parent / "findings.md").read_text().strip()
    parts = [
        fill(findings, lambda name: figure(rows, name)),
        rule_table(rows),
        changes_table(rows),
        *(f"![{title}]({name})" for title, name in pictures.items()),
        effects_table(rows),
        *(published_effects_table(rows, protocol) for protocol in ("stream", "moving-stills")),
        vqbnn_table(rows),
        passes_table(rows),
        throughput_table(docs),
        beyond_table(rows),
        calibration_table(rows),
        class_weights_table(rows),
        scaling_table(docs),
        sets_table(rows),
        ensemble_table(rows),
        seeds_table(rows),
        control_table(rows),
        ranking_table(rows),
        class_table(rows),
        commands(rows),
    ]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def figures(rows: Rows, job: str, protocol: str, method: str) -> dict[str, Any] | None:
    """One measured row, or None where it has not been measured."""
    found = rows.get(job, {}).get("rows", {}).get(protocol, {}).get(method)
    return dict(found) if found else None


def format_row(row: dict[str, Any] | None, keys: Iterable[str] = SHOWN) -> list[str]:
    """Cells: NLL with four digits, shares in percent."""
    return [ABSENT if row is None or row.get(key) is None else cell(key, row[key]) for key in keys]


def cell(key: str, value: float) -> str:
    if key in ("nll", "cec"):
        return f"{value:.4f}"
    return f"{100 * value:.2f}"


def mark_columns(word: str, titles: Iterable[str]) -> list[str]:
    """The columns of a second set of figures, told apart by a word before the first."""
    first, *others = titles
    return [f"{word}: {first}", *others]


def method_of(row: PublishedRow, protocol: str) -> str:
    """Our row for a published one: 30 passes where they have 50, one pass on moving stills."""
    if row.temporal:
        return "vq-bnn" if row.dropout else "vq-dnn"
    if not row.dropout:
        return "dnn"
    return "bnn-1" if protocol == "moving-stills" else "bnn-30"


def published_effects_table(rows: Rows, protocol: str) -> str:
    """Table 2 / E.4, ours beside it, with the change of NLL against each block's plain row."""
    lines = []
    for row in SPATIAL_TABLE:
        method = method_of(row, protocol)
        ours = []
        for recipe in RECIPES:
            found, plain = (
                figures(rows, Network(recipe, *factors).name, protocol, name)
                for factors, name in (((row.dropout, row.smoothing), method), ((False, False), "dnn"))
            )
            ours += [*format_row(found), change(found, plain)]
        first = SPATIAL_TABLE[0]
        published = [
            f"{row.nll:.3f}", f"{100 * row.accuracy:.1f}", f"{100 * row.ece:.2f}", f"{100 * row.consistency:.1f}",
            f"{100 * (row.nll / first.nll - 1):+.0f} %",
        ]  # fmt: skip
        lines.append([yes(row.dropout), yes(row.smoothing), yes(row.temporal), method, *published, *ours])
    if all(set(line[9:]) == {ABSENT} for line in lines):
        return ""
    header = ["MC", "spatial", "temporal", "our row", "NLL", "acc", "ECE", "cons", "NLL change"]
    for recipe in RECIPES:
        header += [f"{recipe}: NLL", "acc", "mIoU", "ECE", "cons", "NLL change"]
    words = (
        "First the published figures (arXiv 2105.12639, Table 2 / E.4; width 64, 720x960 labels, their own stream), then ours "
        "by recipe, temperature 1. Percent but for NLL; changes are against the plain network on single frames."
    )
    return section(f"{TITLES[protocol]}: the published table", words + labels_note(rows), table(header, lines))


def effects_table(rows: Rows) -> str:
    """Each published effect alone: the change of NLL from one row to another."""
    lines = []
    for words, ends in EFFECTS.items():
        cells = []
        for recipe in RECIPES:
            for protocol in ("stream", "moving-stills"):
                base, row = (figures(rows, Network(recipe, *at[:2]).name, protocol, at[2]) for at in ends)
                cells.append(change(row, base))
        base, row = (find_published_nll(*at) for at in ends)
        lines.append([words, change(row, base), *cells])
    if all(set(line[2:]) == {ABSENT} for line in lines):
        return ""
    columns = [f"{recipe}: {protocol}" for recipe in RECIPES for protocol in ("stream", "moving stills")]
    words = (
        "Change of NLL, temperature 1; no row of 30 passes on moving stills. Where both ends are one network, it is the same "
        "weights on the same frames; between two networks there is also the luck of two trainings (*Seeds*)."
    )
    return section("Effect by effect", words + seeds_note(rows), table(["effect", "published", *columns], lines))


def seeds_note(rows: Rows) -> str:
    """How far apart trainings lie that differ in their seed alone, beside which an effect between networks is read."""
    if any(network.name not in rows for network in MEMBERS):
        return ""
    stream, stills, smoothing = (
        figure(rows, f"spread nll paper-plain-?/{what}")
        for what in ("stream/dnn", "stills/dnn", "stream/dnn > =/=/vq-dnn")
    )
    return (
        f" Three plain `paper` trainings, mean ± standard deviation over seeds: NLL {stream} on the stream and {stills} on "
        f"stills; temporal smoothing, within each of them, {smoothing}."
    )


def find_published_nll(dropout: bool, smoothing: bool, method: str) -> dict[str, Any] | None:
    """Table 2 / E.4 has no row of one dropout pass on a single frame."""
    for row in SPATIAL_TABLE:
        if (row.dropout, row.smoothing, method_of(row, "stream")) == (dropout, smoothing, method):
            return {"nll": row.nll}
    return None


def change(row: dict[str, Any] | None, base: dict[str, Any] | None) -> str:
    return ABSENT if row is None or base is None else f"{100 * (row['nll'] / base['nll'] - 1):+.1f} %"


def yes(flag: bool) -> str:
    return "yes" if flag else ABSENT


def vqbnn_table(rows: Rows) -> str:
    """Table 1 of the VQ-BNN paper."""
    plain, dropout = Network("paper", False, False).name, Network("paper", True, False).name
    ours = {
        "DNN": (plain, "dnn"), "BNN (30)": (dropout, "bnn-30"), "VQ-DNN": (plain, "vq-dnn"), "VQ-BNN": (dropout, "vq-bnn"),
    }  # fmt: skip
    lines = []
    for name, published in VQBNN_TABLE.items():
        given = [
            ABSENT if value is None else cell(key, value) for key, value in zip(VQBNN_KEYS, published, strict=True)
        ]
        lines.append([name, *given, *format_row(figures(rows, ours[name][0], "stream", ours[name][1]), VQBNN_KEYS)])
    titles = ["NLL", "acc", "acc-90", "unc-90", "IoU", "IoU-90", "freq-90", "ECE"]
    header = ["", *titles, *mark_columns("ours", titles)]
    words = (
        "arXiv 1907.05911, Table 1 (left) and the `paper` recipe without spatial smoothing on the val stream (right)."
    )
    return section("The VQ-BNN table", words, table(header, lines))


def passes_table(rows: Rows) -> str:
    """NLL against the number of passes, with the one pass that temporal smoothing needs."""
    lines = []
    for network in (network for network in COMPARED if network.dropout):
        for protocol in ("stills", "stream"):
            names = ("dnn", "bnn-1", "bnn-5", "bnn-30", "vq-bnn", "vq-bnn motion")
            found = [figures(rows, network.name, protocol, name) for name in names]
            if any(found):
                lines.append([network.name, protocol, *(format_row(row, ["nll"])[0] for row in found)])
    header = [
        "network",
        "protocol",
        "dropout off",
        "1 pass",
        "5",
        "30",
        "VQ-BNN (1 pass)",
        "VQ-BNN along the motion (1 pass)",
    ]
    return section("NLL by the number of passes", "Temperature 1.", table(header, lines))


def throughput_table(docs: Path) -> str:
    """Relative to the plain network alone, from one run of `steadyseg bench`; it depends on no weights."""
    path = docs / "results-throughput.json"
    if not path.exists():
        return ""
    record = json.loads(path.read_text())
    plain = record["rows"]["bare_plain"]["median_ms"]
    lines = [
        [
            meaning, PUBLISHED_THROUGHPUT.get(name, ABSENT), cell("", plain / row["median_ms"]),
            f"{row['median_ms']:.1f}", str(row["calls"]),
        ]
        for name, meaning in THROUGHPUT_ROWS.items()
        if (row := record["rows"].get(name))
    ]  # fmt: skip
    words = (
        f"Percent of the frames per second of the plain network alone. Published: arXiv 1907.05911, Table 1. Ours: U-Net of "
        f"width 16, {record['executor']}, {record['cores']} cores, side by side in one run: `steadyseg bench "
        f"{record['model']} --rows {' '.join(THROUGHPUT_ROWS)} --json {path.name}`. A median of few calls is uncertain."
    )
    return section("Relative throughput", words, table(["row", "published", "ours", "median ms", "calls"], lines))


def beyond_table(rows: Rows) -> str:
    """The plain rule against the mean that follows motion."""
    lines = []
    for network in COMPARED:
        for protocol in ("stream", "moving-stills"):
            for method in ("dnn", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion"):
                found = figures(rows, network.name, protocol, method)
                if found:
                    lines.append([network.name, protocol, method, *format_row(found), *format_row(found, ["cec"])])
    header = ["network", "protocol", "row", *TITLES_SHOWN, "CEC"]
    words = (
        "`vq-dnn`, `vq-bnn`: the published window (K = 5, tau = 1.25). `motion`: the recursion with tau = 8, carried along the "
        "motion between frames, which was chosen on this stream. Consistency compares the same pixel of neighbouring frames, "
        "so what really moves lowers it."
    )
    return section("Smoothing along the motion", words + labels_note(rows), table(header, lines))


def labels_note(rows: Rows) -> str:
    """The consistency of the true labels, beside which that of predictions is read; the same for every network."""
    if rule_job(PRETRAINED[0]) not in rows:
        return ""
    stream, clips = (figure(rows, f"label_consistency */{protocol}/dnn") for protocol in ("changes", "unseen"))
    return f" The true labels themselves have consistency {stream} % on the stream and {clips} % on (98 of the) moving stills."


def rule_table(rows: Rows) -> str:
    """The default rule on frames that it was not chosen on."""
    lines = []
    for network in [*PRETRAINED, *COMPARED]:
        found = [figures(rows, rule_job(network), "unseen", name) for name in ("dnn", "vq-dnn", "vq-dnn motion")]
        single, window, motion = found
        if single and window and motion:
            keys = ("nll", "accuracy", "ece", "change_agreement")
            cells = [cell for row in found for cell in format_row(row, keys)]
            lines.append([network.name, *cells, change(motion, single), change(motion, window)])
    titles = ("NLL", "acc", "ECE", "agreement")
    header = [
        "network", *mark_columns("single frame", titles), *mark_columns("window", titles), *mark_columns("motion", titles),
        "motion against single frame: NLL", "against window: NLL",
    ]  # fmt: skip
    words = (
        "98 moving stills of test: those that are not in `seg/checkpoints/camvid-test-49.txt`. Dropout off, temperature 1. "
        "`agreement`: change agreement (next table)."
    )
    return section("The default rule on stills that its choice did not see", words, table(header, lines))


def changes_table(rows: Rows) -> str:
    """How predictions change along the stream, and whether the labels change there too."""
    keys = ("nll", "consistency", "label_consistency", "change_agreement", "change_agreement_frozen")
    lines = [
        [network.name, name, *format_row(found, keys)]
        for network in [*PRETRAINED, *COMPARED, *MEMBERS[1:], CONTROL]
        for name in ("dnn", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion")
        if (found := figures(rows, rule_job(network), "changes", name))
    ]
    header = ["network", "row", "NLL", "consistency", "of the labels", "change agreement", "of a frozen prediction"]
    words = (
        "Val stream, temperature 1, percent but for NLL. *Consistency*: share of pixels that keep their predicted class from "
        "frame to frame; *of the labels*: the same of the true labels. *Change agreement*: share of pixels, void in neither "
        "frame, where prediction and label both change or both stay; *of a frozen prediction*: what a picture that never "
        "changes would score. Not measured: rows of many passes, calibrated rows, rows with class weights undone, the ensemble."
    )
    return section("Does a prediction change where the truth does", words, table(header, lines))


def calibration_table(rows: Rows) -> str:
    """Before and after the temperature that was fitted on the other split."""
    lines = []
    for job in rows:
        for protocol in TITLES:
            for name, after in rows[job]["rows"].get(protocol, {}).items():
                if not name.endswith(" calibrated"):
                    continue
                before = figures(rows, job, protocol, name.removesuffix(" calibrated").removesuffix(" fitted memory"))
                lines.append(
                    [job, protocol, name.removesuffix(" calibrated"), FITTED_ON[protocol], f"{after['temperature']:.3f}",
                     *format_row(before, ["nll", "ece", "ece_15"]), *format_row(after, ["nll", "ece", "ece_15", "accuracy"])]
                )  # fmt: skip
    header = [
        "network", "protocol", "row", "fitted on", "T", "NLL", "ECE", "ECE-15", "after: NLL", "ECE", "ECE-15", "acc",
    ]  # fmt: skip
    words = (
        "One temperature per network and mode, fitted with its smoothing switched on. `fitted memory`: tau chosen from 0.5 to "
        "3 by NLL on the same split as the temperature. It has no window to choose: what is older than K frames has "
        "exp(-(K + 1) / tau) of the weight, 0.8 % at the published K = 5 and tau = 1.25."
    )
    return section("Calibration", words, table(header, lines))


def class_weights_table(rows: Rows) -> str:
    """Each row as it comes, and with the class weights of its training undone."""
    lines = []
    for network in COMPARED:
        for protocol in TITLES:
            for name in ("dnn", "vq-dnn", "vq-dnn motion", "bnn-30", "vq-bnn", "vq-bnn motion"):
                before, after = (figures(rows, network.name, protocol, name + end) for end in ("", " undone"))
                if before and after:
                    lines.append(
                        [network.name, protocol, name, *format_row(before), *format_row(after), change(after, before)]
                    )
    header = [
        "network",
        "protocol",
        "row",
        *TITLES_SHOWN,
        *mark_columns("undone", TITLES_SHOWN),
        "NLL change",
    ]
    words = (
        "A loss weighted by w teaches a network p w and not p. `undone`: log w is taken back from the logits, nothing is "
        "fitted (`steadyseg calibrate --logit-adjustment`). Temperature 1."
    )
    return section("What class weights do", words + labels_note(rows), table(header, lines))


SCALINGS = {
    "none": "as trained", "temperature": "temperature", "vector": "vector scaling", "weights undone": "weights undone",
}  # fmt: skip


def scaling_table(docs: Path) -> str:
    """One temperature, a scale and shift for each class, or the class weights of the loss taken back."""
    path = docs / "results-vector-scaling.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    lines = [
        [
            model,
            split,
            meaning,
            *format_row(row, ["nll", "accuracy", "miou", "ece"]),
            cell("", row["pedestrian_recall"]),
        ]
        for model, found in record.items()
        for split, rows in found["rows"].items()
        for name, meaning in SCALINGS.items()
        if (row := rows.get(name))
    ]
    words = (
        "A loss weighted by w teaches a network p w and not p: too much of every rare class. Taking log w back from the logits "
        "needs no data; a temperature, or a scale and a shift for each class (*vector scaling*), is fitted on the other split. "
        "Single frames in fp32, every eighth row and column (`python -m benchmarks.vector_scaling.measure`). Undoing the "
        "weights lowers the recall of rare classes, which is what the weights were for."
    )
    header = ["network", "measured on", "scaling", "NLL", "acc", "mIoU", "ECE", "Pedestrian recall"]
    return section("Class weights, and scaling by class", words, table(header, lines))


def sets_table(rows: Rows) -> str:
    """Coverage and size of the prediction sets, and what the class whose misses are bounded missed."""
    lines = []
    for job in rows:
        for protocol in TITLES:
            for name, found in rows[job]["rows"].get(protocol, {}).items():
                record = found.get("conformal")
                if not record:
                    continue
                risk = record["class_risk"]
                for kind in ("lac", "aps"):
                    one = record[kind]
                    kinds = ("coverage", "coverage_image_mean", "coverage_image_p5", "coverage_image_min")
                    shares = [cell("", one[key]) for key in kinds]
                    by = one["coverage_by_sequence"]
                    recordings = ", ".join(f"{label} {100 * share:.1f}" for label, share in by.items())
                    missed = [cell("", risk[key]) for key in ("risk", "reported_share")] if kind == "lac" else ["", ""]
                    lines.append(
                        [job, protocol, name, kind.upper(), *shares, recordings, f"{one['set_size']:.2f}", *missed]
                    )
    header = [
        "network", "protocol", "row", "sets", "pixels covered", "images: mean", "5th percentile", "least", "by recording",
        "classes a set", "Pedestrian missed", "pixels reported as one",
    ]  # fmt: skip
    words = (
        "Asked for: 90 % of the pixels, and at most 5 % of a Pedestrian's pixels missed on average over images; thresholds "
        "from the other split, temperature 1. Percent. The guarantee holds for exchangeable samples. Pixels of an image are "
        "not, and two drives are not: what came out is read per image and per recording."
    )
    return section("Prediction sets", words, table(header, lines))


def ensemble_table(rows: Rows) -> str:
    names = ("ensemble", "vq-ensemble", "ensemble calibrated", "vq-ensemble calibrated")
    lines = [
        [protocol, name, *format_row(found)]
        for protocol in TITLES
        for name in names
        if (found := figures(rows, "paper-ensemble", protocol, name))
    ]
    published = ", ".join(f"{name} {value}" for name, value in ENSEMBLES.items())
    words = f"Three plain networks (seeds 0 to 2). Published NLL: {published}."
    return section("Deep ensemble", words + labels_note(rows), table(["protocol", "row", *TITLES_SHOWN], lines))


def seeds_table(rows: Rows) -> str:
    """How far trainings that differ in their seed alone lie apart, and what smoothing over time does to each."""
    lines = []
    for protocol in ("stream", "stills"):
        for name in ("dnn", "vq-dnn", "vq-dnn motion"):
            for network in MEMBERS:
                found, single = (figures(rows, network.name, protocol, row) for row in (name, "dnn"))
                if found:
                    lines.append([protocol, name, str(network.seed), *format_row(found), change(found, single)])
    words = (
        "The plain network of the `paper` recipe, temperature 1. Changes are against the same network's single frame."
    )
    return section(
        "Seeds", words + labels_note(rows), table(["protocol", "row", "seed", *TITLES_SHOWN, "NLL change"], lines)
    )


def control_table(rows: Rows) -> str:
    """The same training with and without the stills nearest in time to the val stream."""
    whole = Network("paper", True, True)
    lines = []
    for name in ("dnn", "bnn-30", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion"):
        without, with_all = (figures(rows, network.name, "stream", name) for network in (CONTROL, whole))
        if without and with_all:
            lines.append([name, *format_row(with_all), *format_row(without), change(without, with_all)])
    header = ["row", *TITLES_SHOWN, *mark_columns("without", TITLES_SHOWN), "NLL change"]
    words = (
        f"`{whole.name}` on the val stream, temperature 1; then the same training without the 20 train stills nearest in time "
        "to it (`benchmarks/results/nearest_to_val.txt`)."
    )
    return section("What the stills next to the stream give away", words + labels_note(rows), table(header, lines))


def ranking_table(rows: Rows) -> str:
    """How well confidence finds the errors."""
    lines = []
    for job in rows:
        for protocol in TITLES:
            for name, found in rows[job]["rows"].get(protocol, {}).items():
                if name.endswith("calibrated") or found.get("error_recall_10") is None:
                    continue
                caught, ceiling = found["error_recall_10"], found["error_recall_10_ceiling"]
                shares = [cell("", share) for share in (caught, ceiling, caught / ceiling)]
                others = format_row(found, ["brier", "ece_signed", "acc_90", "iou_90", "unc_90", "freq_90"])
                lines.append([job, protocol, name, f"{found['aurc']:.4f}", *shares, *others])
    header = [
        "network", "protocol", "row", "AURC", "error recall in the least sure 10 %", "ceiling", "share of it", "Brier",
        "ECE+-", "acc-90", "IoU-90", "unc-90", "freq-90",
    ]  # fmt: skip
    return section("How well uncertainty finds errors", "Temperature 1; percent but for AURC.", table(header, lines))


def class_table(rows: Rows) -> str:
    """Per class: what smoothing over time gives and takes."""
    parts = []
    for recipe in RECIPES:
        job = Network(recipe, False, False).name
        for protocol in ("stream", "moving-stills"):
            methods = ("dnn", "vq-dnn", "vq-dnn motion")
            found = [figures(rows, job, protocol, name) for name in methods]
            if not all(found):
                continue
            lines = [
                [name, *(percent(row[key][i]) for key in ("iou", "class_consistency") for row in found if row)]
                for i, name in enumerate(CAMVID.names)
            ]
            header = ["class", *(f"IoU {name}" for name in methods), *(f"cons {name}" for name in methods)]
            parts.append(f"`{job}`, {TITLES[protocol].lower()}:\n\n{table(header, lines)}")
    return section("By class", "The plain networks, percent." + labels_note(rows), "\n\n".join(parts))


def percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.1f}"


def commands(rows: Rows) -> str:
    """Where every row comes from."""
    lines = []
    for network in [*COMPARED, *MEMBERS[1:], CONTROL]:
        about: Callable[[str], str] = lambda key, name=network.name: str(rows.get(name, {}).get(key, ABSENT))  # noqa: E731
        lines.append([f"`{network.name}`", f"`{network.command}`", about("digest"), about("commit")])
    words = (
        "Any row again: `steadyseg evaluate benchmarks/results/checkpoints/NETWORK.safetensors --data CamVid --split val "
        "--protocol stream --mode MODE [--samples N] [--tau T --window K | --motion on] [--temperature T] --precision bf16 "
        "--seed 0`, for the ensemble with `--members` and seeds 1 and 2, for rows `undone` with what `steadyseg calibrate "
        "--logit-adjustment` writes; `docs/results.json` holds the flags of each beside its figures. The digest is of data "
        "and weights, the commit is the one that measured."
    )
    return section("Where it comes from", words, table(["network", "trained by", "digest", "commit"], lines))
