"""Vector scaling (a scale and a shift for each class, Guo et al. 2017) against one temperature, on single frames with
dropout off.

    python -m steadyseg.studies.vector_scaling.measure camvid-unet-s --data CamVid

writes its rows into docs/studies/results/vector-scaling.json, whose table `python -m steadyseg.studies.results` makes.
Both are fitted on one split by NLL (L-BFGS on every 8th row and column) and measured on the other, both ways round.
`weights undone` needs no fit: a loss weighted by w teaches p_c w_c, so log w_c is subtracted from the logits (logit
adjustment, Menon et al. 2021, arXiv 2007.07314).
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from steadyseg.core.classes import CAMVID
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.statistics import measure
from steadyseg.seg.pretrained import find_checkpoint, read_segmenter
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, origin

THIN = 8
PEDESTRIAN = CAMVID.names.index("Pedestrian")
RECORD = PAGES / "results" / "vector-scaling.json"


def logits_of(model: str, data: Path, split: str) -> tuple[Tensor, Tensor]:
    """(pixels, K) logits and (pixels,) labels of every THIN-th row and column, void left out."""
    opened = read_segmenter(model)
    network, meta = opened.network().to(memory_format=torch.channels_last), opened.meta
    set_dropout_active(network, False)
    normalize = Normalize(meta.mean, meta.std)
    rows, truths = [], []
    with torch.inference_mode():
        for frame in open_split(data, split).frames():
            pixels = resize(torch.from_numpy(frame.image)[None].permute(0, 3, 1, 2), (meta.height, meta.width))
            thin = network(normalize(pixels))[0, :, ::THIN, ::THIN].flatten(1).T
            label = torch.from_numpy(frame.label)[::THIN, ::THIN].flatten().long()
            kept = label != meta.classes.void
            rows.append(thin[kept])
            truths.append(label[kept])
    return torch.cat(rows), torch.cat(truths)


def weights_undone(model: str, data: Path) -> Tensor:
    """(K,) minus the logarithm of the class weights that the network was trained with."""
    training = read_meta(find_checkpoint(model)).training["config"]
    exponent = {"none": 0.0, "softened": training["soften"], "median-frequency": 1.0}[training["class_weights"]]
    split = open_split(data, "train")
    weights = measure([split[index] for index in range(len(split))], split.classes).median_frequency
    return -exponent * torch.tensor(weights).log()


def fit_scaling(logits: Tensor, labels: Tensor, per_class: bool) -> tuple[Tensor, Tensor]:
    """(scale, shift): one scale for all classes, or a scale and a shift for each."""
    classes = logits.shape[1]
    scale = torch.ones(classes if per_class else 1, requires_grad=True)
    shift = torch.zeros(classes, requires_grad=per_class)
    chosen = [scale, shift] if per_class else [scale]
    optimizer = torch.optim.LBFGS(chosen, max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(logits * scale + shift, labels)
        loss.backward()
        return loss

    optimizer.step(closure)
    return scale.detach(), shift.detach()


def figures(logits: Tensor, labels: Tensor) -> dict[str, float]:
    metrics = StreamingMetrics(logits.shape[1], None)
    metrics.update(torch.softmax(logits, 1), labels)
    found = metrics.result()
    recall = logits.argmax(1)[labels == PEDESTRIAN].eq(PEDESTRIAN).double().mean().item()
    return {key: found[key] for key in ("nll", "accuracy", "miou", "ece")} | {"pedestrian_recall": recall}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    splits = {split: logits_of(given.model, given.data, split) for split in ("val", "test")}
    undone = weights_undone(given.model, given.data)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for fit, measured in (("val", "test"), ("test", "val")):
        logits, labels = splits[measured]
        found = rows[measured] = {"none": figures(logits, labels), "weights undone": figures(logits + undone, labels)}
        for name, per_class in (("temperature", False), ("vector", True)):
            scale, shift = fit_scaling(*splits[fit], per_class)
            found[name] = figures(logits * scale + shift, labels)
    Cache(RECORD).put(Path(given.model).stem, rests_on(given.model, data_digest(given.data)), rows, origin())


if __name__ == "__main__":
    main()
