"""The tables of docs/studies/labelling."""

from typing import Any

from steadyseg.studies.harness.tables import Tables, bind, read_record, spread, table
from steadyseg.studies.labelling import chosen
from steadyseg.studies.labelling.suspects import OBJECTS, RANKINGS, RECORD
from steadyseg.studies.labelling.trainings import ROUNDS, START, STEP, WAYS

CRITERIA = ("expected error", "disagreement", "unusualness", "score")


def tables() -> Tables:
    """The tables of the page by name; each is a function that writes the table."""
    found = bind(read_record("labelling", RECORD), {"suspects": suspects})
    return {
        **found,
        **bind(read_record("labelling", chosen.RECORD), {"chosen": chosen_frames}),
        **bind(read_record("labelling", "pick.json"), {"pick": pick}),
    }


def suspects(record: dict[str, Any]) -> str:
    """Precision among the first suspects, by network, split, damage and order, and the objects that they show."""
    header = ["network, split", "damage", "suspect regions", "hits among them"]
    header += [f"precision at {OBJECTS}: {way}" for way in RANKINGS]
    lines = []
    for network, part in record.items():
        for damage, row in part["rows"].items():
            counts = [spread(row[key], 1, 0) for key in ("regions", "hits")]
            precisions = [spread(row[way]["precision"], 1, 2) for way in RANKINGS]
            lines.append([network, damage, *counts, *precisions, spread(row["self-confidence"]["recall"], 1, 2)])
            lines[-1].append(f"{min(row['self-confidence']['precision']):.2f}")
    return table([*header, "objects shown, by self-confidence", "its worst seed: precision"], lines)


def chosen_frames(record: dict[str, Any]) -> str:
    """Wrong pixels and rare classes in the chosen frames and in all, and correlations with the wrong pixels."""
    lines = []
    for network, part in record.items():
        row = part["rows"]
        shares = [f"{row[key][which]:.4f}" for key in ("wrong", "rare") for which in ("all", "chosen")]
        lines.append([network, *shares, *(f"{row['correlation'][key]:.2f}" for key in CRITERIA)])
    kinds = [f"{what}, {which}" for what in ("wrong pixels", "rare classes") for which in ("all frames", "chosen")]
    return table(["network", *kinds, *(f"correlation: {key}" for key in CRITERIA)], lines)


def pick(record: dict[str, Any]) -> str:
    """MIoU and accuracy on test by the number of labelled frames and the way that they were chosen, over the seeds."""
    counts = [START + round_ * STEP for round_ in range(ROUNDS + 1)]
    lines = []
    for title, key in (("mIoU", "miou"), ("accuracy", "accuracy")):
        for way in WAYS:
            names = ["start", *(f"{way}-{count}" for count in counts[1:])]
            found = [[done[name][key] for done in record.values() if name in done] for name in names]
            lines.append([title, way, *(spread(values, 100, 1) for values in found)])
    return table(["%", "frames chosen", *(f"{count} frames" for count in counts)], lines)
