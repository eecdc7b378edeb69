"""The published training with BatchNorm before ReLU. Each method is compared with the plain network of the same seed.

    python -m steadyseg.studies.papers 130-epochs --device cpu --data data --out OUT

Its OUT/130-epochs.json is docs/records/results/replica.json. Seventy minutes of one core a training.
"""

from itertools import product
from typing import Any

from steadyseg.studies.harness.tables import read_record, table

PUBLISHED = {
    "plain dnn": 0.354, "plain vq-dnn": 0.290, "smooth dnn": 0.318, "smooth vq-dnn": 0.278, "mc bnn": 0.298,
    "mc vq-bnn": 0.273, "mc-smooth bnn": 0.284, "mc-smooth vq-bnn": 0.260,
}  # fmt: skip
"""NLL of arXiv 2105.12639, Table 2 and E.4; the mean has tau 1.25 frames at 30 Hz."""
FORMS, SEEDS = ("plain", "smooth", "mc", "mc-smooth"), (0, 1)
"""As studies.papers trains them."""
HEADER = ["frames", "network", "seed", "method", "tau", "NLL", "accuracy, %", "mIoU, %", "ECE, %", "consistency, %"]
SHARES = ("accuracy", "miou", "ece", "consistency")


def replica_table() -> str:
    """Metrics by protocol, training and method, and the change of the NLL against the plain network's single frames."""
    record, lines = read_record("results", "replica.json"), []
    for protocol, seed, name in product(("stream", "stills"), SEEDS, FORMS):
        for row in rows_of(record, name, seed, protocol):
            plain = rows_of(record, "plain", seed, protocol)[0]["nll"]
            published = PUBLISHED.get(f"{name} {row['mode']}") if protocol == "stream" else None
            changes = [row["nll"] / plain - 1, published and published / PUBLISHED["plain dnn"] - 1]
            shares = ("-" if row[key] is None else f"{100 * row[key]:.2f}" for key in SHARES)
            tau = str(row["tau"]) if row["mode"].startswith("vq") else "-"
            cells = ("-" if change is None else f"{100 * change:+.1f} %" for change in changes)
            lines.append([protocol, name, str(seed), row["mode"], tau, f"{row['nll']:.4f}", *shares, *cells])
    return table([*HEADER, "NLL against plain dnn", "published"], lines)


def rows_of(record: dict[str, Any], name: str, seed: int, protocol: str) -> list[dict[str, Any]]:
    """The evaluations of a training, single frames first; none of a training that has not been made."""
    rows = record.get(f"replica180-{name}-{seed}", {"evaluations": ()})["evaluations"]
    return [row for row in rows if row["protocol"] == protocol]
