"""docs/novelty.md: every figure in it is from docs/novelty.json."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.document import section, table, wrap
from benchmarks.novelty.figures import UNLIKE_FITTED

Record = dict[str, dict[str, Any]]
CONTROL_SCORES = ("novelty", "pooled distance, last stage", "the same, cameras not shown", "entropy")
MOTORWAYS = ("motorway 1", "motorway 2")
OBJECTS = ("photographs", "small photographs", "CIFAR-10 enlarged", "moving photographs")
NO_PICTURES = ("noise", "one colour", "text", "test pattern", "green test pattern")

HEAD = (Path(__file__).parent / "head.md").read_text().strip()


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def document(record: Record) -> str:
    """Markdown."""
    tables = (targets, foreign_table, control_table, alarm_table, corruption_table)
    parts = [HEAD, sample_note(record), *(made(record) for made in tables)]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def sample_note(record: Record) -> str:
    parts = [f"`{name}`: one picture in {found['every']}" for name, found in record.items()]
    return "**Samples.** " + "; ".join(parts) + ". Few pictures a kind: read a difference of 0.05 in AUROC as none."


def worst(found: dict[str, Any], kinds: tuple[str, ...], score: str = "novelty") -> float:
    return float(min(found["foreign"][kind]["auroc"][score] for kind in kinds if kind in found["foreign"]))


def mean_over(found: dict[str, Any], way: str, key: str, only: tuple[str, ...] = ()) -> float:
    kinds = only or tuple(found["corrupted"])
    return float(np.mean([found["corrupted"][kind][way][key] for kind in kinds]))


def targets(record: Record) -> str:
    rows = (
        ("AUROC, no road and no picture, worst kind", ">= 0.99", lambda f: f"{worst(f, OBJECTS + NO_PICTURES):.3f}"),
        ("the same by mean entropy", "", lambda f: f"{worst(f, OBJECTS + NO_PICTURES, 'entropy'):.3f}"),
        (
            "AUROC, motorways",
            ">= 0.95",
            lambda f: " / ".join(f"{f['foreign'][k]['auroc']['novelty']:.3f}" for k in MOTORWAYS),
        ),
        (
            "camera-only control of the same clips",
            "<= 0.65",
            lambda f: " / ".join(f"{f['controls'][f'codec of {k}']['auroc']['novelty']:.2f}" for k in MOTORWAYS),
        ),
        ("alarms, val stream, %", "<= 10", lambda f: percent(f["alarms"]["val"]["alarms"])),
        ("alarms, Seq05VD, %", "<= 15", lambda f: percent(f["alarms"]["Seq05VD"]["alarms"])),
        ("alarms, mild and camera-only changes, %", "<= 15", lambda f: percent(f["mild_alarms"]["alarms"])),
        (
            "ECE under corruption, severity 3, mean of 15 types, %",
            "<= 5",
            lambda f: (
                f"{percent(mean_over(f, 'frame', 'ece'))} (temperature 1: {percent(mean_over(f, 'none', 'ece'))})"
            ),
        ),
        ("of these, types unlike all fitted ones", "", lambda f: percent(mean_over(f, "frame", "ece", UNLIKE_FITTED))),
        (
            "ECE, clean stills, %",
            "<= 1.5",
            lambda f: f"{percent(f['clean']['frame']['ece'])} (temperature 1: {percent(f['clean']['none']['ece'])})",
        ),
        (
            "NLL, same corruptions, change, %",
            "<= -25",
            lambda f: f"{100 * (mean_over(f, 'frame', 'nll') / mean_over(f, 'none', 'nll') - 1):+.0f}",
        ),
        (
            "expected against true accuracy of a frame, points",
            "<= 6",
            lambda f: f"{percent(f['expected']['frame'])} (temperature 1: {percent(f['expected']['none'])})",
        ),
    )
    lines = [[name, wanted, *(figure(found) for found in record.values())] for name, wanted, figure in rows]
    words = wrap(
        "Expected accuracy is the mean confidence; its error is over frames of test, val, the corruptions and the controls.\n"
        "ECE is of the pixels of a kind together."
    )
    return section("Targets", words, table(["figure", "wanted", *record], lines))


def foreign_table(record: Record) -> str:
    parts = []
    for name, found in record.items():
        scores = list(next(iter(found["foreign"].values()))["auroc"])
        lines = [
            [kind, str(row["pictures"]), percent(row["alarms"]), *(f"{row['auroc'][score]:.2f}" for score in scores)]
            for kind, row in found["foreign"].items()
        ]
        parts.append(f"`{name}`\n\n" + table(["pictures of", "pictures", "alarms, %", *scores], lines))
    words = (
        "AUROC against clean test stills. Two clips give no interval. *Cameras not shown*: the last stage's pooled\n"
        "distance fitted on the frames as they are. Nearest neighbours: of the deepest stage's mean features."
    )
    return section("Foreign pictures, and other scores", wrap(words), "\n\n".join(parts))


def control_table(record: Record) -> str:
    parts = []
    for name, found in record.items():
        lines = [
            [
                kind, percent(row["alarms"]), f"{100 * (row['accuracy'] - row['clean_accuracy']):+.1f}",
                *(f"{row['auroc'][score]:.2f}" for score in CONTROL_SCORES),
            ]
            for kind, row in found["controls"].items()
        ]  # fmt: skip
        head = ["change", "alarms, %", "accuracy, points", "AUROC: novelty", *CONTROL_SCORES[1:]]
        parts.append(f"`{name}`\n\n" + table(head, lines))
    words = (
        "Mild and camera-only changes of test stills, against all clean ones: AUROC 0.5 and few alarms are wanted. Exposure,\n"
        "white balance, size and H.264 were among the made cameras, drawn at random; JPEG was not."
    )
    return section("Another camera is not another world", wrap(words), "\n\n".join(parts))


def alarm_table(record: Record) -> str:
    lines = []
    for name, found in record.items():
        for where, row in {**found["alarms"], "own world (held back)": found["own_alarms"]}.items():
            low, high = row["interval"]
            lines.append(
                [name, where, str(row["frames"]), percent(row["alarms"]), f"{percent(low)} to {percent(high)}"]
            )
    words = "Binomial intervals of 95 %; frames of one drive repeat each other, so the truth is less sure than that."
    return section("Alarms at 5 %", words, table(["network", "frames of", "frames", "alarms, %", "interval"], lines))


def corruption_table(record: Record) -> str:
    parts = []
    for name, found in record.items():
        lines = []
        for kind, row in found["corrupted"].items():
            frame = row["frame"]
            marked = f"{kind} *" if kind in UNLIKE_FITTED else kind
            ends = f"{percent(frame['ece'])} ({percent(frame['ece_low'])} to {percent(frame['ece_high'])})"
            errors = [percent(row[way]["ece"]) for way in ("none", "one")]
            nlls = [f"{row[way]['nll']:.2f}" for way in ("none", "one", "frame")]
            lines.append([marked, percent(row["accuracy"]), *errors, ends, *nlls, percent(row["alarms"])])
        head = [
            "type", "accuracy, %", "ECE at temperature 1", "one fitted", "of the frame (95 %)", "NLL at 1", "one fitted",
            "of the frame", "alarms, %",
        ]  # fmt: skip
        parts.append(f"`{name}`\n\n" + table(head, lines))
    words = (
        "Severity 3 on test stills. *One fitted*: a single temperature, fitted on the same pictures. Types with a star are\n"
        "unlike all that was fitted on. Intervals: 1,000 draws of the stills."
    )
    return section("Calibration under corruption", wrap(words), "\n\n".join(parts))
