"""Makes a run's result a bundled checkpoint: half-precision weights, measured figures and the licence note in its
record.

python -m steadyseg.studies.harness.bundle runs/1/model.safetensors camvid-unet-s --licence "..." --results stills.json
"""

import argparse
import dataclasses
import json
from pathlib import Path

import torch
from torch import Tensor

from steadyseg.classification.pretrained import ARCHITECTURE
from steadyseg.classification.pretrained import FOLDER as CLASSIFIERS
from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import digest_of_weights, held_beside, load_checkpoint, read_meta, save_checkpoint
from steadyseg.core.model.tensor_file import PREFIXES, read_whole, weights_alone
from steadyseg.core.picture_size import network_size
from steadyseg.runtime.open_model import find_model
from steadyseg.seg.pretrained import FOLDER as SEGMENTERS
from steadyseg.studies.harness.study import round_figures

CARD_KEYS = tuple(
    (
        "data split protocol mode samples tau motion average calibrated temperature seed backend frames "
        "frame_list_hash "
        "nll accuracy top_5_accuracy miou iou ece ece_15 ece_signed brier acc_90 iou_90 unc_90 freq_90 aurc "
        "error_recall_10 error_recall_10_ceiling consistency label_consistency change_agreement "
        "change_agreement_frozen "
        "fitted_on conformal"
    ).split()
)
"""Keys of an evaluation's JSON that go into the record."""


def bundle(
    source: Path,
    name: str,
    licence: str,
    command: str,
    results: list[Path],
    folder: Path,
    mean_with: str | None = None,
    size: int | None = None,
    weights_of: str | None = None,
) -> Path:
    """Writes `folder/name.safetensors` and its .json; results are files of `steadyseg evaluate --report`. The metrics
    must be measured with the fp16 weights: bundle without results, evaluate the bundled file, then bundle again with
    the results. `mean_with` is a checkpoint of the same layers: every weight becomes the mean of both (WiSE-FT, arXiv
    2109.01903, with the weights that a fine-tuning began with). `size` is another height of the input.
    `weights_of` is a checkpoint in the folder with the same weights, which are left out.
    """
    tensors, meta = load_checkpoint(source)
    if size:
        height, width = network_size(meta.height, meta.width, size)
        meta = dataclasses.replace(meta, height=height, width=width)
    if mean_with:
        others, _ = load_checkpoint(find_model(mean_with))
        tensors = {key: mean_of(value, others[key]) for key, value in tensors.items()}
    half = {
        key: value.half() if value.is_floating_point() and not key.startswith(PREFIXES) else value
        for key, value in tensors.items()
    }
    if any(not torch.isfinite(value.float()).all() for value in half.values()):
        raise InputError(f"{source}: a weight does not fit into half precision; it cannot be bundled")
    metrics = dict(meta.metrics)
    for path in results:
        record = json.loads(path.read_text())
        metrics[f"{record['protocol']}-{record['mode']}"] = {
            key: round_figures(record[key]) for key in CARD_KEYS if key in record
        }
    target = folder / f"{name}.safetensors"
    training = meta.training | ({"command": command} if command else {})
    meta = dataclasses.replace(meta, metrics=metrics, training=training, licence=licence or meta.licence)
    if weights_of:
        file = folder / f"{weights_of}.safetensors"
        meta = dataclasses.replace(meta, weights={"file": file.name, "digest": digest_of_weights(read_whole(file))})
        if not held_beside(target, meta, weights_alone(half)):
            raise InputError(f"{source}: {file} has other weights; nothing is written")
    save_checkpoint(target, half, meta)
    return target


def mean_of(one: Tensor, other: Tensor) -> Tensor:
    """The mean in single precision; counters are the first's."""
    return (one.float() + other.float()) / 2 if one.is_floating_point() else one


def main() -> None:
    """Bundles the checkpoint of a run among the networks of its kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("name")
    parser.add_argument("--licence", default="")
    parser.add_argument("--command", default="", help="the training command, for the record")
    parser.add_argument("--mean-with", help="an included network or a checkpoint of the same layers")
    parser.add_argument("--size", type=int, help="the height of the input, where it is not the training's")
    parser.add_argument("--weights-of", metavar="NAME", help="leave out the weights: they are those of this network")
    parser.add_argument("--results", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    folder = CLASSIFIERS if read_meta(given.source).architecture == ARCHITECTURE else SEGMENTERS
    print(bundle(**vars(given), folder=folder))


if __name__ == "__main__":
    main()
