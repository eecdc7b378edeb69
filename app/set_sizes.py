"""How many classes a pixel may be: the size of its conformal prediction set, as a picture."""

import numpy as np
import torch

from app.opencv import opencv
from core.checkpoint import CheckpointMeta
from core.conformal import prediction_sets
from core.errors import InputError
from core.frame import Maps

LARGEST_SET = 6
"""Classes of a set that is drawn in the brightest colour, and of all larger ones."""


def conformal_threshold(meta: CheckpointMeta, mode: str) -> float:
    """The checkpoint's LAC threshold for this mode; InputError says how to get one."""
    conformal = meta.calibration.get(mode, {}).get("conformal")
    threshold = conformal.get("lac") if isinstance(conformal, dict) else None
    if not isinstance(threshold, float):
        raise InputError(f"set sizes need `steadyseg calibrate`: this model has none for {mode}")
    return threshold


def set_sizes(maps: Maps, threshold: float) -> np.ndarray:
    """(H, W) uint8: 0 where one class is possible, 255 where `LARGEST_SET` or more are."""
    if maps.probs is None:
        raise ValueError("set sizes need probabilities: open the segmenter with keep_probs=True")
    sizes = prediction_sets(torch.from_numpy(maps.probs), "lac", threshold).sum(0).numpy()  # (h, w)
    shades = np.clip((sizes - 1) * (255 / (LARGEST_SET - 1)), 0, 255).astype(np.uint8)
    height, width = maps.label.shape
    return np.asarray(opencv().resize(shades, (width, height), interpolation=opencv().INTER_NEAREST))
