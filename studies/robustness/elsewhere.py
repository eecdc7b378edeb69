"""Whether a network is less sure of pictures from elsewhere than of its own data's: entropy, disagreement, set
sizes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from app.sources.open_source import Source, open_source
from core.errors import InputError
from core.evaluation.conformal import prediction_sets
from core.evaluation.ood_detection import auroc, uncertainty_scores
from core.prediction import Prediction
from core.seeds import mix_seed
from studies.harness.pictures import Pictures
from studies.harness.rows import Row
from studies.harness.target import Method, TargetNetwork
from studies.robustness.flags import ELSEWHERE_SAMPLES, RobustnessOptions, Watch, no_progress

SURE = 0.9
"""A sample of lower confidence is one that the network abstains from: the cutoff of Acc-90 and Freq-90."""
SET_KINDS = ("lac", "aps")
SCORE_NOTES = {
    "reported_": "reported_CLASS: share of a picture in which the class whose misses are bounded is reported",
    "novelty": "novelty: deviations of a picture's features from the mean of the network's own world",
}
"""What scores mean that only some checkpoints have."""


def study_elsewhere(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`rows` by network, method and score: means here and elsewhere, and the area under the ROC curve that tells them
    apart."""
    groups = {"here": list(pictures.images), "elsewhere": list(elsewhere_pictures(pictures, options.elsewhere))}
    scores: dict[tuple[str, Method, str], dict[str, list[float]]] = {}
    jobs = [(group, number) for group, images in groups.items() for number in range(len(images))]
    for group, number in watch(jobs, "elsewhere"):
        for subject in subjects:
            for method, values in scores_of(subject, groups[group][number], options, number):
                for score, value in values.items():
                    found = scores.setdefault((subject.name, method, score), {name: [] for name in groups})
                    found[group].append(value)
    return {
        "pictures": len(pictures),
        "elsewhere_pictures": len(groups["elsewhere"]),
        "sources": [Path(spec).name for spec in options.elsewhere],
        "rows": [row_of(*key, found) for key, found in scores.items()],
        "notes": [
            "entropy and disagreement are means over a picture, as shares of ln K; abstains: share of it that is "
            "less sure "
            f"than {SURE:.0%}; lac, aps: mean number of classes in a prediction set",
            "auroc: probability that a picture from elsewhere scores higher than one from here; 0.5 is chance, "
            "below it the "
            "network is surer elsewhere",
            *[told for score, told in SCORE_NOTES.items() if any(score in key[2] for key in scores)],
            *calibration_notes(subjects, pictures, options),
        ],
    }


def row_of(model: str, method: Method, score: str, found: Mapping[str, list[float]]) -> Row:
    here, elsewhere = (torch.tensor(found[group], dtype=torch.float64) for group in ("here", "elsewhere"))
    return {
        "model": model,
        "mode": method.mode,
        "samples": method.samples,
        "score": score,
        "mean_here": float(here.mean()),
        "mean_elsewhere": float(elsewhere.mean()),
        "auroc": auroc(here, elsewhere),
        "scores_here": found["here"],
        "scores_elsewhere": found["elsewhere"],
    }


def elsewhere_methods(subject: TargetNetwork, options: RobustnessOptions) -> list[Method]:
    """As always, and passes enough to disagree: the most that are asked for."""
    methods = subject.methods(options.samples or ((ELSEWHERE_SAMPLES,) if subject.is_segmentation else ()))
    return methods[:1] + methods[1:][-1:]


def scores_of(
    subject: TargetNetwork, image: np.ndarray, options: RobustnessOptions, number: int
) -> Iterator[tuple[Method, dict[str, float]]]:
    """Of one picture (H, W, 3)."""
    methods = elsewhere_methods(subject, options)
    for method, seen in subject.predict([image], methods, mix_seed(options.seed, number)):
        whole = {name: float(value) / seen.max_entropy for name, value in uncertainty_scores(seen).items()}
        scores = {"entropy": whole["entropy"], "abstains": float((seen.confidence < SURE).double().mean())}
        if method.samples > 1:
            scores["disagreement"] = whole["disagreement"]
        if seen.novelty is not None:
            scores["novelty"] = float(seen.novelty.score)
        yield method, scores | conformal_scores(subject, method, seen)


def conformal_scores(subject: TargetNetwork, method: Method, seen: Prediction) -> dict[str, float]:
    """Mean set sizes of one picture, and how much of it a class whose misses are bounded is reported in; where
    calibrated."""
    fitted = subject.fit(method)
    probs = seen.probs.movedim(1, 0).flatten(1)  # (K, samples)
    scores = {}
    for kind in SET_KINDS:
        threshold = fitted.get("conformal", {}).get(kind)
        if isinstance(threshold, float):
            scores[kind] = mean_set_size(probs, kind, threshold)
    risk = fitted.get("class_risk")
    if risk:
        reported = probs[subject.meta.classes.names.index(risk["class"])] >= risk["threshold"]
        scores[f"reported_{risk['class'].lower()}"] = float(reported.double().mean())
    return scores


def mean_set_size(probs: Tensor, kind: str, threshold: float) -> float:
    return float(prediction_sets(probs, kind, threshold).sum(0).double().mean())


def calibration_notes(subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions) -> list[str]:
    """Where prediction sets are missing, or were fitted on what they are looked at on."""
    notes = []
    for subject in subjects:
        for method in elsewhere_methods(subject, options):
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


def elsewhere_pictures(pictures: Pictures, specs: Sequence[str]) -> Iterator[np.ndarray]:
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
        raise InputError(f"--elsewhere {spec}: a live source has no end; give a video file or a folder of images")
