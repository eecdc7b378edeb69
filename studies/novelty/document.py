"""docs/studies/novelty: every figure in it is from docs/studies/novelty/record.json."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from studies.harness.document import section, table, wrap
from studies.novelty.calibration import HALVES
from studies.novelty.figures import KEPT, UNLIKE_FITTED

Record = dict[str, Any]
CONTROL_SCORES = ("novelty", "distance, last stage", "the same, cameras not shown", "entropy")
MOTORWAYS = ("motorway 1", "motorway 2")
NO_ROADS = (
    "photographs",
    "small photographs",
    "CIFAR-10 enlarged",
    "moving photographs",
    "noise",
    "one colour",
    "text",
    "test pattern",
    "green test pattern",
)
SEEDS = "paper-plain"
HERE = Path(__file__).parent


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def document(record: Record) -> str:
    """Markdown."""
    head = (HERE / "head.md").read_text().strip()
    tables = (
        targets,
        foreign_table,
        stage_table,
        motorway_table,
        control_table,
        alarm_table,
        corruption_table,
        swap_table,
        stream_table,
        risk_table,
        region_table,
        left_out_table,
        passes_table,
        classifier_table,
        cost_table,
    )
    parts = [head, samples(record), *(made(record) for made in tables)]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def part(title: str, content: str) -> str:
    """A section whose words stand in words.md."""
    sections = (HERE / "words.md").read_text().split("## ")
    words = next(one.split("\n", 1)[1] for one in sections if one.startswith(f"{title}\n"))
    return section(title, wrap(words.strip() + "\n"), content)


def samples(record: Record) -> str:
    every = " or ".join(sorted({str(found["every"]) for found in record["networks"].values()}))
    return (
        f"**Samples.** One picture in {every} of a group. Few pictures a kind: read a difference of 0.05 in "
        f"AUROC as none."
    )


def own(record: Record) -> dict[str, Any]:
    """The networks that come with the package."""
    return {name: found for name, found in record["networks"].items() if not name.startswith(SEEDS)}


def seeds(record: Record) -> list[Any]:
    return [found for name, found in record["networks"].items() if name.startswith(SEEDS)]


def worst(found: Any, kinds: tuple[str, ...], score: str = "novelty") -> float:
    return float(min(found["foreign"][kind]["auroc"][score] for kind in kinds))


def mean_over(found: Any, way: str, key: str, only: tuple[str, ...] = ()) -> float:
    return float(np.mean([found["corrupted"][kind][way][key] for kind in only or found["corrupted"]]))


Figure = Callable[[Any], float]
TARGETS: tuple[tuple[str, str, Figure, str], ...] = (
    ("AUROC, no road and no picture, worst kind", ">= 0.99", lambda f: worst(f, NO_ROADS), ".3f"),
    ("the same by mean entropy", "", lambda f: worst(f, NO_ROADS, "entropy"), ".3f"),
    *(
        (f"AUROC, {clip}", ">= 0.95", lambda f, clip=clip: f["foreign"][clip]["auroc"]["novelty"], ".2f")
        for clip in MOTORWAYS
    ),
    *(
        (
            f"test stills through the codec of {clip}",
            "<= 0.65",
            lambda f, clip=clip: f["controls"][f"codec of {clip}"]["auroc"]["novelty"],
            ".2f",
        )
        for clip in MOTORWAYS
    ),
    ("alarms, val stream, %", "<= 10", lambda f: 100 * f["alarms"]["val"]["alarms"], ".1f"),
    ("alarms, Seq05VD, %", "<= 15", lambda f: 100 * f["alarms"]["Seq05VD"]["alarms"], ".1f"),
    ("alarms, mild and camera-only changes, %", "<= 15", lambda f: 100 * f["mild_alarms"]["alarms"], ".1f"),
    (
        "ECE under corruption, severity 3, mean of 15 types, %",
        "<= 5",
        lambda f: 100 * mean_over(f, "frame", "ece"),
        ".1f",
    ),
    ("the same at temperature 1", "", lambda f: 100 * mean_over(f, "none", "ece"), ".1f"),
    ("types unlike all fitted ones", "", lambda f: 100 * mean_over(f, "frame", "ece", UNLIKE_FITTED), ".1f"),
    ("ECE, clean stills, %", "<= 1.5", lambda f: 100 * f["clean"]["frame"]["ece"], ".1f"),
    ("the same at temperature 1", "", lambda f: 100 * f["clean"]["none"]["ece"], ".1f"),
    (
        "NLL, same corruptions, change, %",
        "<= -25",
        lambda f: 100 * (mean_over(f, "frame", "nll") / mean_over(f, "none", "nll") - 1),
        "+.0f",
    ),
    ("expected against true accuracy of a frame, points", "<= 6", lambda f: 100 * f["expected"]["frame"], ".1f"),
    ("the same at temperature 1", "", lambda f: 100 * f["expected"]["none"], ".1f"),
)


def targets(record: Record) -> str:
    """The last column is there where trainings of one recipe were measured: mean, least and most."""
    lines = []
    for name, wanted, figure, form in TARGETS:
        trained = [figure(found) for found in seeds(record)]
        last = [f"{np.mean(trained):{form}} ({min(trained):{form}} to {max(trained):{form}})"] if trained else []
        lines.append([name, wanted, *(f"{figure(found):{form}}" for found in own(record).values()), *last])
    head = ["figure", "wanted", *own(record), *([f"{SEEDS}, {len(seeds(record))} trainings"] if seeds(record) else [])]
    picture = "![Share of right pixels over confidence under the 15 corruptions](reliability.png)"
    return part("Targets", f"{table(head, lines)}\n\n{picture}")


def by_network(record: Record, head: list[str], lines: Callable[[Any], list[list[str]]]) -> str:
    """A table for every network of the package."""
    return "\n\n".join(f"`{name}`\n\n{table(head, lines(found))}" for name, found in own(record).items())


def foreign_table(record: Record) -> str:
    scores = list(next(iter(own(record).values()))["foreign"]["noise"]["auroc"])

    def lines(found: Any) -> list[list[str]]:
        return [
            [kind, str(row["pictures"]), percent(row["alarms"]), *(f"{row['auroc'][score]:.2f}" for score in scores)]
            for kind, row in found["foreign"].items()
        ]

    made = by_network(record, ["pictures of", "pictures", "alarms, %", *scores], lines)
    return part("Foreign pictures, and other scores", made)


def stage_table(record: Record) -> str:
    parts = []
    for name, found in own(record).items():
        stages = list(next(iter(found["by_stage"].values())))
        lines = [[kind, *(f"{row[stage]:.2f}" for stage in stages)] for kind, row in found["by_stage"].items()]
        head = ["pictures", *(f"**{stage}**" if stage in found["stages"] else stage for stage in stages)]
        parts.append(f"`{name}`\n\n{table(head, lines)}")
    return part("Which stage carries which shift", "\n\n".join(parts))


def motorway_table(record: Record) -> str:
    lines = [
        [
            name,
            clip,
            *(percent(row[key]) for key in ("Sky", "Road", "Car", "all")),
            *(percent(row["confidence"][way]) for way in ("none", "frame")),
        ]
        for name, clips in record["motorway_labels"].items()
        for clip, row in (clips or {}).items()
    ]
    head = ["network", "clip", "sky", "road", "vehicles", "all", "confidence at temperature 1", "of the frame"]
    return part("How right it is on the motorways", table(head, lines))


def control_table(record: Record) -> str:
    def lines(found: Any) -> list[list[str]]:
        return [
            [
                kind,
                percent(row["alarms"]),
                f"{100 * (row['accuracy'] - row['clean_accuracy']):+.1f}",
                *(f"{row['auroc'][score]:.2f}" for score in CONTROL_SCORES),
            ]
            for kind, row in found["controls"].items()
        ]

    made = by_network(record, ["change", "alarms, %", "accuracy, points", "AUROC: novelty", *CONTROL_SCORES[1:]], lines)
    return part("Another camera is not another world", made)


def alarm_table(record: Record) -> str:
    lines = [
        [name, where, str(row["frames"]), percent(row["alarms"]), " to ".join(map(percent, row["interval"]))]
        for name, found in record["networks"].items()
        for where, row in {**found["alarms"], "own world (held back)": found["own_alarms"]}.items()
    ]
    return part("Alarms at 5 %", table(["network", "frames of", "frames", "alarms, %", "interval"], lines))


def corruption_table(record: Record) -> str:
    def lines(found: Any) -> list[list[str]]:
        return [
            [
                f"{kind} *" if kind in UNLIKE_FITTED else kind,
                percent(row["accuracy"]),
                *(percent(row[way]["ece"]) for way in ("none", "one")),
                f"{percent(row['frame']['ece'])} ({percent(row['frame']['ece_low'])} to "
                f"{percent(row['frame']['ece_high'])})",
                *(f"{row[way]['nll']:.2f}" for way in ("none", "one", "frame")),
                percent(row["alarms"]),
            ]
            for kind, row in found["corrupted"].items()
        ]

    head = [
        "type",
        "accuracy, %",
        "ECE at temperature 1",
        "one fitted",
        "of the frame (95 %)",
        "NLL at 1",
        "one fitted",
        "of the frame",
        "alarms, %",
    ]
    return part("Calibration under corruption", by_network(record, head, lines))


def swap_table(record: Record) -> str:
    lines = [
        [name, half, other, percent(row["ece"]), f"{row['nll']:.2f}"]
        for name, found in record["networks"].items()
        for half, other in zip(HALVES, list(HALVES)[::-1], strict=True)
        for row in [found["swapped"][f"fitted on {half}"]]
    ]
    return part(
        "One half fitted, the other judged",
        table(["network", "fitted on", "judged on", "ECE, %", "NLL"], lines),
    )


def stream_table(record: Record) -> str:
    ways = {"one": "one", "frame": "frame", "dropout": "frame, one dropout pass"}
    lines = [
        [
            name,
            kind,
            words,
            percent(row[way]["accuracy"]),
            percent(row[way]["ece"]),
            f"{row[way]['nll']:.2f}",
            percent(row[way]["expected_error"]),
            percent(row[way]["coverage"]) if "coverage" in row[way] else "",
        ]
        for name, found in record["streams"].items()
        for kind, row in (found["types"] if found else {}).items()
        for way, words in ways.items()
        if way in row
    ]
    head = ["network", "type", "temperature", "accuracy, %", "ECE, %", "NLL", "expected, points", "sets, %"]
    picture = "![Novelty and expected accuracy over a stream cut from town to motorway to photographs](cuts.png)"
    made = table(head, lines)
    return part("Over a stream", f"{made}\n\n{picture}" if made else "")


def risk_table(record: Record) -> str:
    lines = [
        [name, score, *map(percent, risks)]
        for name, found in own(record).items()
        for score, risks in found["risk"].items()
    ]
    head = ["network", "score", *(f"{100 * share:.0f} % kept" for share in KEPT)]
    return part("Risk against coverage", table(head, lines))


def region_table(record: Record) -> str:
    lines = [
        [name, score, *figures_of(row)]
        for name, found in record["regions"].items()
        for score, row in (found["scores"] if found else {}).items()
    ]
    shares = {
        f"{found['pictures']} test stills, {percent(found['share'])} %" for found in record["regions"].values() if found
    }
    lines = [["", f"pixels of objects: {', '.join(sorted(shares))}", "", "", ""], *lines] if lines else []
    return part("Foreign objects in a known scene", table(["network", "score", "AP", "AUROC", "FPR95, %"], lines))


def figures_of(row: dict[str, float]) -> list[str]:
    return [f"{row['ap']:.3f}", f"{row['auroc']:.2f}", percent(row["fpr95"])]


def left_out_table(record: Record) -> str:
    lines = [
        [name, f"{found['pictures']}, {percent(found['share'])} %", score, *figures_of(row)]
        for name, found in record.get("left_out", {}).items()
        for score, row in found["scores"].items()
    ]
    head = ["class", "stills, its share of the pixels", "score", "AP", "AUROC", "FPR95, %"]
    return part("A class that training never saw", table(head, lines) if lines else "")


def passes_table(record: Record) -> str:
    drawn = [
        (name, int(count), row)
        for name, found in record["passes"].items()
        for count, row in (found["passes"] if found else {}).items()
    ]
    parts: dict[str, dict[str, float]] = {
        f"{name}, {count} dropout {'passes' if count > 1 else 'pass'}: {score}": {
            kind: row[score] for kind, row in found["auroc"].items()
        }
        for name, count, found in drawn
        for score in ("disagreement", "entropy", "novelty")
        if score == "novelty" or count > 1
    }
    if ensemble := record.get("ensemble"):
        parts[f"{SEEDS}, {ensemble['members']} members: disagreement"] = ensemble["auroc"]
    for name, found in record["networks"].items():
        parts[f"{name}: novelty"] = {kind: row["auroc"]["novelty"] for kind, row in found["foreign"].items()}
    kinds = (*MOTORWAYS, *NO_ROADS)
    lines = [[name, *(f"{row[kind]:.2f}" if kind in row else "" for kind in kinds)] for name, row in parts.items()]
    alarms = [f"{percent(found['alarms']['test'])} % ({name}, {count})" for name, count, found in drawn]
    words = "AUROC of what several passes or networks disagree on, beside novelty, also that of dropout passes."
    if alarms:
        every = {found["every"] for found in record["passes"].values() if found}
        words += (
            f" Dropout passes: one picture in {max(every)} of a group; alarms among clean test stills by number "
            f"of them: "
        )
        words += f"{', '.join(alarms)}."
    if ensemble:
        words += (
            f" The ensemble's mean ECE under the 15 corruptions: {percent(ensemble['corrupted_ece']['none'])} %, and\n"
            f"{percent(ensemble['corrupted_ece']['frame'])} % with each member's temperature of the frame."
        )
    return section("Several passes, several networks", wrap(words + "\n"), table(["score", *kinds], lines))


def classifier_table(record: Record) -> str:
    found = record.get("classifiers", {})
    if not found:
        return ""
    lines = [["alarms among test pictures, %", *(percent(one["alarms"]) for one in found.values())]]
    for kind in next(iter(found.values()))["foreign"]:
        lines += [
            [f"AUROC, {kind}, by {score}", *(f"{one['foreign'][kind]['auroc'][score]:.2f}" for one in found.values())]
            for score in ("novelty", "entropy")
        ]
    ways = {"one": "one temperature", "picture": "one for each picture"}
    for title, mean in (("test pictures", clean_mean), ("15 corruptions", corrupted_mean)):
        for key, name in (("ece", "ECE, %"), ("ece_signed", "confidence - accuracy, points"), ("nll", "NLL")):
            lines += [
                [f"{name}, {title}, {words}", *(digits(mean(one, way, key), key) for one in found.values())]
                for way, words in ways.items()
            ]
    return part("Classifiers", table(["figure", *found], lines))


def clean_mean(found: Any, way: str, key: str) -> float:
    return float(found["clean"][way][key])


def corrupted_mean(found: Any, way: str, key: str) -> float:
    return float(np.mean([row[way][key] for row in found["corrupted"].values()]))


def digits(value: float, key: str) -> str:
    return f"{value:.2f}" if key == "nll" else f"{100 * value:+.1f}" if key == "ece_signed" else percent(value)


def cost_table(record: Record) -> str:
    lines = [
        [
            processor,
            name,
            f"{row['without_ms']:.1f}",
            f"{row['with_ms']:.1f}",
            f"{100 * row['share']:+.1f}",
            " to ".join(f"{100 * one:+.1f}" for one in row["share_quartiles"]),
        ]
        for processor, found in record.get("cost", {}).items()
        for name, row in found["models"].items()
    ]
    head = ["processor", "network", "without, ms", "with, ms", "change, %", "quartiles of pairs"]
    return part("What it costs", table(head, lines))
