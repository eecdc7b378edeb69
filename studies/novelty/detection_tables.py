"""Tables of what novelty and other scores detect: pictures, stages, cameras, objects, classes, several passes."""

from collections.abc import Callable, Iterable
from typing import Any

from steadyseg.studies.harness.tables import table

Record = dict[str, Any]
CONTROL_SCORES = ("distance, last stage", "the same, cameras not shown", "entropy")
MOTORWAYS = ("motorway 1", "motorway 2")
NO_ROADS = tuple(
    (
        "photographs, small photographs, CIFAR-10 enlarged, moving photographs, noise, one colour, text, test "
        "pattern, green test pattern"
    ).split(", ")
)
KINDS = (*MOTORWAYS, *NO_ROADS)
SEEDS = "paper-plain"
"""Networks of one recipe that differ in their seed."""


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def included(record: Record) -> dict[str, Any]:
    """The networks that come with the package."""
    return {name: found for name, found in record["networks"].items() if not name.startswith(SEEDS)}


def by_network(record: Record, head: list[str], lines: Callable[[Any], Iterable[list[str]]]) -> str:
    """A table for every included network."""
    return "\n\n".join(f"`{name}`\n\n{table(head, lines(found))}" for name, found in included(record).items())


def pictures_table(record: Record) -> str:
    scores = list(next(iter(included(record).values()))["foreign"]["noise"]["auroc"])

    def lines(found: Any) -> Iterable[list[str]]:
        for kind, row in found["foreign"].items():
            aurocs = (f"{row['auroc'][score]:.2f}" for score in scores)
            yield [kind, str(row["pictures"]), percent(row["alarms"]), *aurocs]

    return by_network(record, ["pictures of", "pictures", "alarms, %", *scores], lines)


def stages_table(record: Record) -> str:
    parts = []
    for name, found in included(record).items():
        stages = list(next(iter(found["by_stage"].values())))
        lines = [[kind, *(f"{row[stage]:.2f}" for stage in stages)] for kind, row in found["by_stage"].items()]
        head = ["pictures", *(f"**{stage}**" if stage in found["stages"] else stage for stage in stages)]
        parts.append(f"`{name}`\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def motorways_table(record: Record) -> str:
    lines = []
    for name, clips in record["motorway_labels"].items():
        for clip, row in (clips or {}).items():
            right = (percent(row[key]) for key in ("Sky", "Road", "Car", "all"))
            sure = (percent(row["confidence"][way]) for way in ("none", "frame"))
            lines.append([name, clip, *right, *sure])
    head = ["network", "clip", "sky", "road", "vehicles", "all", "confidence at temperature 1", "of the frame"]
    return table(head, lines)


def cameras_table(record: Record) -> str:
    def lines(found: Any) -> Iterable[list[str]]:
        for kind, row in found["controls"].items():
            change = f"{100 * (row['accuracy'] - row['clean_accuracy']):+.1f}"
            aurocs = (f"{row['auroc'][score]:.2f}" for score in ("novelty", *CONTROL_SCORES))
            yield [kind, percent(row["alarms"]), change, *aurocs]

    return by_network(record, ["change", "alarms, %", "accuracy, points", "AUROC: novelty", *CONTROL_SCORES], lines)


def average_precision(row: dict[str, float]) -> list[str]:
    return [f"{row['ap']:.3f}", f"{row['auroc']:.2f}", percent(row["fpr95"])]


def objects_table(record: Record) -> str:
    """Scores of regions on the objects for choosing and on those that are reported."""
    lines = [
        [
            f"{name}, {percent(found['report']['share'])} %",
            score,
            f"{found['choice']['scores'][score]['ap']:.3f}",
            *average_precision(row),
            f"{row['f1']:.2f}",
            f"{100 * found['home']['regions'][score] / found['home']['pictures']:.0f}",
        ]
        for name, found in record["regions"].items()
        for score, row in (found["report"]["scores"] if found else {}).items()
    ]
    head = [
        "network, objects' share of the pixels",
        "score",
        "AP, chosen on",
        "AP",
        "AUROC",
        "FPR95, %",
        "F1 of regions",
    ]
    return table([*head, "regions in 100 pictures at home"], lines)


def classes_table(record: Record) -> str:
    lines = [
        [name, f"{found['pictures']}, {percent(found['share'])} %", score, *average_precision(row)]
        for name, found in record["left_out"].items()
        for score, row in found["scores"].items()
    ]
    return table(["class", "stills, its share of the pixels", "score", "AP", "AUROC", "FPR95, %"], lines)


def passes_table(record: Record) -> str:
    """AUROC by several dropout passes and by an ensemble, beside that of one pass without dropout."""
    lines = []

    def add(name: str, aurocs: dict[str, float], alarms: float | None = None) -> None:
        cells = [f"{aurocs[kind]:.2f}" if kind in aurocs else "" for kind in KINDS]
        lines.append([name, *cells, "" if alarms is None else percent(alarms)])

    for name, found in record["passes"].items():
        for count, row in (found["passes"] if found else {}).items():
            for score in ("disagreement", "entropy", "novelty") if int(count) > 1 else ("novelty",):
                title = f"{name}, {count} dropout {'passes' if int(count) > 1 else 'pass'}: {score}"
                aurocs = {kind: told[score] for kind, told in row["auroc"].items()}
                add(title, aurocs, row["alarms"]["test"] if score == "novelty" else None)
    ensemble = record["ensemble"]
    add(f"{SEEDS}, {ensemble['members']} members: disagreement", ensemble["auroc"])
    for name, found in record["networks"].items():
        add(f"{name}: novelty", {kind: row["auroc"]["novelty"] for kind, row in found["foreign"].items()})
    return table(["score", *KINDS, "alarms among test stills, %"], lines)


def ensemble_table(record: Record) -> str:
    ece = record["ensemble"]["corrupted_ece"]
    lines = [["every member at temperature 1", percent(ece["none"])]]
    return table(["three plain trainings together, 15 corruptions", "mean ECE, %"], lines)


DETECTION: dict[str, Callable[[Record], str]] = {
    "pictures": pictures_table,
    "stages": stages_table,
    "motorways": motorways_table,
    "cameras": cameras_table,
    "objects": objects_table,
    "classes": classes_table,
    "passes": passes_table,
    "ensemble": ensemble_table,
}
