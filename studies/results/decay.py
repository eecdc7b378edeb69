"""The published mean on CamVid's val stream at two decay times, beside single frames, at temperature 1.

    python -m steadyseg.studies.results.decay --data data/camvid [--fresh]

The published weights are e^-0.8 a frame at 30 Hz (tau 1.25 frames). Val runs at 15 Hz: there the same number of frames
is twice the time, and tau 0.625 is the same time. Ten minutes of one core; rows of the same weights are kept.
"""

import sys
from pathlib import Path

from steadyseg.core.system.machine import cpu_name
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin
from steadyseg.studies.harness.tables import read_record, table
from steadyseg.studies.results.front import SHOWN, run_command
from steadyseg.studies.results.protocol import evaluated

COMMAND = "steadyseg evaluate NAME --data CamVid --split val --protocol stream --motion off --calibrated off "
FRAMES, TIME = "--tau 1.25", "--tau 0.625"
"""As published, in frames of the stream; scaled to the published time."""
ROWS = {
    "VQ-DNN": ("--mode dnn", f"--mode vq-dnn {FRAMES}", f"--mode vq-dnn {TIME}"),
    "VQ-BNN": ("--mode bnn --samples 1", f"--mode vq-bnn {FRAMES}", f"--mode vq-bnn {TIME}"),
}
"""Single frames of one pass, and the two means of the same passes."""
KEYS = ("nll", "accuracy", "miou", "ece", "consistency", "executor")


def run(data: Path, fresh: bool) -> None:
    cache, frames = Cache(PAGES / "results" / "decay.json"), data_digest(data)
    for name in SHOWN:
        digest = rests_on(name, frames)
        if fresh or cache.get(name, digest) is None:
            rows = {flags: evaluated(COMMAND + flags, name, data) for of in ROWS.values() for flags in of}
            kept = {flags: {key: row[key] for key in KEYS} for flags, row in rows.items()}
            cache.put(name, digest, kept, {**origin(), "command": COMMAND.strip(), "cpu": cpu_name()})


def decay_table() -> str:
    """NLL, ECE and consistency of each network and method."""
    header = ["network", "mean"]
    for words in ("single frames", "tau 1.25 frames, as published", "tau 0.625 frames, the published time"):
        header += [f"{words}: NLL", "ECE", "cons"]
    lines = []
    for network, found in read_record("results", "decay.json").items():
        for method, of in ROWS.items():
            rows = [found["rows"][flags] for flags in of]
            cells = [f"{row['nll']:.4f} {100 * row['ece']:.2f} {100 * row['consistency']:.2f}" for row in rows]
            changes = [f"{100 * (row['nll'] / rows[0]['nll'] - 1):+.1f} %" for row in rows[1:]]
            lines.append([f"`{network}`", method, *" ".join(cells).split(), *changes])
    return table([*header, "NLL change, tau 1.25", "tau 0.625"], lines)


if __name__ == "__main__":
    sys.exit(run_command("decay", __doc__, run))
