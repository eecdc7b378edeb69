"""Makes a run's result a bundled checkpoint: half-precision weights, measured figures and the licence note in its record.

python -m seg.bundle runs/camvid/model.safetensors camvid-unet-s --licence "..." --results stills.json stream.json
"""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import torch

from core.checkpoint import load_checkpoint, save_checkpoint
from core.errors import InputError
from seg.bundled import FOLDER

CARD_KEYS = (
    "data", "split", "protocol", "mode", "samples", "tau", "window", "motion", "calibrated", "temperature", "seed",
    "executor", "frames", "frame_list_hash", "nll", "accuracy", "miou", "iou", "ece", "ece_15", "ece_signed", "brier",
    "acc_90", "iou_90", "unc_90", "freq_90", "consistency",
)  # fmt: skip
"""What of an evaluation's JSON goes into the record."""


def bundle(
    source: Path,
    name: str,
    licence: str,
    command: str,
    results: list[Path],
    folder: Path = FOLDER,
    uncertainty: dict[str, Any] | None = None,
) -> Path:
    """Writes `folder/name.safetensors` and its .json; results are files of `steadyseg evaluate --json`.

    `uncertainty` is what `seg.novelty.usual_uncertainty` measured; the page tells unfamiliar pictures by it.

    fp16 is what is measured afterwards too: bundle without results, evaluate the bundled file, bundle again with them.
    """
    tensors, meta = load_checkpoint(source)
    half = {key: value.half() if value.is_floating_point() else value for key, value in tensors.items()}
    if any(not torch.isfinite(value.float()).all() for value in half.values()):
        raise InputError(f"{source}: a weight does not fit into half precision; it cannot be bundled")
    metrics = dict(meta.metrics)
    for path in results:
        record = json.loads(path.read_text())
        metrics[f"{record['protocol']}-{record['mode']}"] = {
            key: rounded(record[key]) for key in CARD_KEYS if key in record
        }
    if uncertainty is not None:
        metrics["uncertainty"] = uncertainty
    training = meta.training | ({"command": command} if command else {})
    target = folder / f"{name}.safetensors"
    save_checkpoint(
        target, half, dataclasses.replace(meta, metrics=metrics, training=training, licence=licence or meta.licence)
    )
    return target


def rounded(value: Any) -> Any:
    """Six decimals are more than any measurement here carries."""
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("name")
    parser.add_argument("--licence", default="")
    parser.add_argument("--command", default="", help="the training command, for the record")
    parser.add_argument("--results", type=Path, nargs="*", default=[])
    parser.add_argument("--uncertainty", type=Path, help="CamVid's folder: measure how unsure its test images leave it")
    parser.add_argument("--frames", type=Path, help="text file of base names: only these test images for --uncertainty")
    given = parser.parse_args()
    usual = None
    if given.uncertainty is not None:
        from seg.novelty import usual_uncertainty

        usual = usual_uncertainty(given.source, given.uncertainty, given.frames)
    print(bundle(given.source, given.name, given.licence, given.command, given.results, uncertainty=usual))
