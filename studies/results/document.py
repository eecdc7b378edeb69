"""docs/studies/results: every table is made from the measured rows, and so are the figures in the sentences of
findings.md."""

from collections.abc import Callable
from pathlib import Path

from core.classes import CAMVID
from core.system.files import write_atomic
from studies.harness.document import fill, section, table
from studies.results.calibration_tables import calibration_table, class_weights_table, scaling_table, sets_table
from studies.results.cells import (
    ABSENT,
    TITLES,
    TITLES_SHOWN,
    Rows,
    cell,
    change,
    format_row,
    mark_columns,
    percent,
    row_at,
)
from studies.results.figures import figure
from studies.results.matrix import COMPARED, CONTROL, MEMBERS, RECIPES, Network
from studies.results.plots import write_plots
from studies.results.published import (
    ENSEMBLES,
)
from studies.results.published_tables import (
    effects_table,
    passes_table,
    published_effects_table,
    throughput_table,
    vqbnn_table,
)
from studies.results.rule_tables import beyond_table, changes_table, labels_note, rule_table


def write_document(rows: Rows, page: Path, strips: dict[str, str]) -> None:
    """Writes docs/studies/results and its pictures; `strips` are some that are there already, {title: file name}."""
    pictures = write_plots(rows, page) | strips
    write_atomic(page / "README.md", document(rows, page, pictures).encode())


def document(rows: Rows, page: Path, pictures: dict[str, str]) -> str:
    """The whole text; `docs` holds what other studies measured."""
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
        throughput_table(page),
        beyond_table(rows),
        calibration_table(rows),
        class_weights_table(rows),
        scaling_table(page),
        sets_table(rows),
        ensemble_table(rows),
        seeds_table(rows),
        control_table(rows),
        ranking_table(rows),
        class_table(rows),
        commands(rows),
    ]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def ensemble_table(rows: Rows) -> str:
    names = ("ensemble", "vq-ensemble", "ensemble calibrated", "vq-ensemble calibrated")
    lines = [
        [protocol, name, *format_row(found)]
        for protocol in TITLES
        for name in names
        if (found := row_at(rows, "paper-ensemble", protocol, name))
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
                found, single = (row_at(rows, network.name, protocol, row) for row in (name, "dnn"))
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
        without, with_all = (row_at(rows, network.name, "stream", name) for network in (CONTROL, whole))
        if without and with_all:
            lines.append([name, *format_row(with_all), *format_row(without), change(without, with_all)])
    header = ["row", *TITLES_SHOWN, *mark_columns("without", TITLES_SHOWN), "NLL change"]
    words = (
        f"`{whole.name}` on the val stream, temperature 1; then the same training without the 20 train stills "
        f"nearest in time "
        "to it (`studies/results/nearest_to_val.txt`)."
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
        "network",
        "protocol",
        "row",
        "AURC",
        "error recall in the least sure 10 %",
        "ceiling",
        "share of it",
        "Brier",
        "ECE+-",
        "acc-90",
        "IoU-90",
        "unc-90",
        "freq-90",
    ]
    return section("How well uncertainty finds errors", "Temperature 1; percent but for AURC.", table(header, lines))


def class_table(rows: Rows) -> str:
    """Per class: what smoothing over time gives and takes."""
    parts = []
    for recipe in RECIPES:
        job = Network(recipe, False, False).name
        for protocol in ("stream", "moving-stills"):
            methods = ("dnn", "vq-dnn", "vq-dnn motion")
            found = [row_at(rows, job, protocol, name) for name in methods]
            if not all(found):
                continue
            lines = [
                [name, *(percent(row[key][i]) for key in ("iou", "class_consistency") for row in found if row)]
                for i, name in enumerate(CAMVID.names)
            ]
            header = ["class", *(f"IoU {name}" for name in methods), *(f"cons {name}" for name in methods)]
            parts.append(f"`{job}`, {TITLES[protocol].lower()}:\n\n{table(header, lines)}")
    return section("By class", "The plain networks, percent." + labels_note(rows), "\n\n".join(parts))


def commands(rows: Rows) -> str:
    """Where every row comes from."""
    lines = []
    for network in [*COMPARED, *MEMBERS[1:], CONTROL]:
        about: Callable[[str], str] = lambda key, name=network.name: str(rows.get(name, {}).get(key, ABSENT))  # noqa: E731
        lines.append([f"`{network.name}`", f"`{network.command}`", about("digest"), about("commit")])
    words = (
        "Any row again: `steadyseg evaluate runs/NETWORK/model.safetensors --data CamVid --split val "
        "--protocol stream --mode MODE [--samples N] [--tau T --window K | --motion on] [--temperature T] "
        "--precision bf16 "
        "--seed 0`, for the ensemble with `--members` and seeds 1 and 2, for rows `undone` with what "
        "`steadyseg calibrate "
        "--logit-adjustment` writes; `docs/studies/results/record.json` holds the flags of each beside its figures. The "
        "digest is of data "
        "and weights, the commit is the one that measured."
    )
    return section("Where it comes from", words, table(["network", "trained by", "digest", "commit"], lines))
