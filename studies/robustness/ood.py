"""Study `ood`: uncertainty, set sizes and familiarity on out-of-distribution pictures and on the data's own."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.source import Source
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.conformal import prediction_sets
from steadyseg.core.method import Method
from steadyseg.core.prediction import Prediction
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.ood_detection import auroc
from steadyseg.studies.harness.pictures import Pictures
from steadyseg.studies.harness.target import TargetNetwork
from steadyseg.studies.robustness.flags import OOD_SAMPLES, RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.tally import Row

SURE = 0.9
"""A sample of lower confidence is one that the network abstains from: the cutoff of Acc-90 and Freq-90."""
SCORE_NOTES = {
    "reported_": "reported_CLASS: share of a picture in which the class whose misses are bounded is reported",
    "familiarity": "familiarity: deviations of a picture's features from the mean of the training domain",
}
"""Explanations of scores that only some checkpoints have."""


def study_ood(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`rows` by network, method and score: means on the data and on OOD pictures, and the area under the ROC curve."""
    groups = {"data": list(pictures.images), "ood": list(ood_pictures(pictures, options.ood))}
    scores: dict[tuple[str, Method, str], dict[str, list[float]]] = {}
    jobs = [(group, number) for group, images in groups.items() for number in range(len(images))]
    for group, number in watch(jobs, "ood"):
        for subject in subjects:
            for method, values in scores_of(subject, groups[group][number], options, number):
                for score, value in values.items():
                    found = scores.setdefault((subject.name, method, score), {name: [] for name in groups})
                    found[group].append(value)
    return {
        "pictures": len(pictures),
        "ood_pictures": len(groups["ood"]),
        "sources": [Path(spec).name for spec in options.ood],
        "rows": [row_of(*key, found) for key, found in scores.items()],
        "notes": [
            "entropy and disagreement are means over a picture, as shares of ln K; abstains: share of it that is less "
            f"sure than {SURE:.0%}; lac: mean number of classes in a prediction set",
            "auroc: probability that an out-of-distribution picture scores higher than one of the data; 0.5 is "
            "chance, below it the network is surer of out-of-distribution pictures",
            *[told for score, told in SCORE_NOTES.items() if any(score in key[2] for key in scores)],
            *calibration_notes(subjects, pictures, options),
        ],
    }


def row_of(model: str, method: Method, score: str, found: Mapping[str, list[float]]) -> Row:
    data, ood = (torch.tensor(found[group], dtype=torch.float64) for group in ("data", "ood"))
    return {
        "model": model,
        "mode": method.mode,
        "samples": method.samples,
        "score": score,
        "mean_data": float(data.mean()),
        "mean_ood": float(ood.mean()),
        "auroc": auroc(data, ood),
        "scores_data": found["data"],
        "scores_ood": found["ood"],
    }


def ood_methods(subject: TargetNetwork, options: RobustnessOptions) -> list[Method]:
    """One pass without dropout, and the largest number of dropout passes, as disagreement needs several."""
    methods = subject.methods(options.sample_counts or ((OOD_SAMPLES,) if subject.is_segmentation else ()))
    return methods[:1] + methods[1:][-1:]


def scores_of(
    subject: TargetNetwork, image: np.ndarray, options: RobustnessOptions, number: int
) -> Iterator[tuple[Method, dict[str, float]]]:
    """The scores of one picture (H, W, 3), method by method."""
    methods = ood_methods(subject, options)
    for method, seen in subject.predict([image], methods, mix_seed(options.seed, number)):
        scores = {
            "entropy": float(seen.entropy.mean()) / seen.max_entropy,
            "abstains": float((seen.confidence < SURE).double().mean()),
        }
        if method.samples > 1:
            scores["disagreement"] = float(seen.disagreement.mean()) / seen.max_entropy
        if seen.scores is not None:
            scores["familiarity"] = float(seen.scores.score)
        yield method, scores | conformal_scores(subject, method, seen)


def conformal_scores(subject: TargetNetwork, method: Method, seen: Prediction) -> dict[str, float]:
    """Returns the mean sizes of the prediction sets of a picture, and the share of pixels with the class of bounded
    risk. A network without calibration has neither."""
    fitted = subject.fit(method)
    probs = seen.probs.movedim(1, 0).flatten(1)  # (K, samples)
    scores = {}
    threshold = fitted.get("conformal", {}).get("lac")
    if isinstance(threshold, float):
        scores["lac"] = float(prediction_sets(probs, threshold).sum(0).double().mean())
    risk = fitted.get("class_risk")
    if risk:
        reported = probs[subject.meta.classes.names.index(risk["class"])] >= risk["threshold"]
        scores[f"reported_{risk['class'].lower()}"] = float(reported.double().mean())
    return scores


def calibration_notes(subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions) -> list[str]:
    """Notes on prediction sets that are missing, or that were fitted on the pictures of this study."""
    notes = []
    for subject in subjects:
        for method in ood_methods(subject, options):
            fitted = subject.fit(method)
            if "conformal" not in fitted:
                others = "; ".join(map(str, subject.calibrated_methods)) or "no method"
                notes.append(
                    f"{subject.name} {method}: no prediction sets; it is calibrated for {others} (steadyseg calibrate)"
                )
            elif (fitted.get("data"), fitted.get("split")) == (pictures.data, pictures.split):
                notes.append(
                    f"{subject.name} {method}: its thresholds were fitted on {pictures.data} {pictures.split} itself"
                )
    return notes


def ood_pictures(pictures: Pictures, specs: Sequence[str]) -> Iterator[np.ndarray]:
    """(H, W, 3) uint8 RGB as the networks see them, as many as the study has, spread over the sources and along
    each."""
    wanted = math.ceil(len(pictures) / len(specs))
    for spec in specs:
        with open_source(spec) as source:
            require_recorded(spec, source)
            stride = max(1, (source.info.length or 0) // wanted)
            for frame in islice(source, 0, wanted * stride, stride):
                yield pictures.view(frame.image)


def require_recorded(spec: str, source: Source) -> None:
    if source.info.live:
        raise InputError(f"--ood {spec}: a live source has no end; give a video file or a folder of images")
