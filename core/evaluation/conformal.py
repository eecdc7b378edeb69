"""Conformal prediction: sets that hold the true class with a chosen probability, and a bound on the missed pixels of a
class.

Thresholds come from histograms, so memory does not grow with the data. The guarantees of conformal prediction hold for
exchangeable samples, such as independent images from one source. Pixels of an image and frames of a stream are not
exchangeable. A threshold reaches the chosen coverage over all pixels of similar data, but not in each image. Coverage
is therefore also reported per image.
"""

import math
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.coarse import settle
from steadyseg.core.evaluation.metrics import kept_positions

SCORE_BINS = 65536
"""Number of bins over 0..1."""
RISK_BINS = 2000


class ConformalScores:
    """LAC scores (Sadinle et al. 2019, arXiv 1609.00451) of every non-void pixel: 1 - p(true class)."""

    def __init__(self, void: int | None) -> None:
        """`void` None: the samples are a classifier's images, and every one counts."""
        self.void = void
        self._counts = torch.zeros(SCORE_BINS, dtype=torch.int64)

    def update(self, probs: Tensor, labels: Tensor) -> None:
        """probs (K, ...), labels (...) ids or int32 sets; of a set the likeliest class counts as the true class."""
        labels = settle(probs[None], labels[None], self.void).ids[0]
        kept = kept_positions(labels, self.void)
        p_true = probs.flatten(1)[:, kept].gather(0, labels.flatten()[kept][None])[0]
        bins = ((1.0 - p_true) * SCORE_BINS).long().clamp_(0, SCORE_BINS - 1)
        self._counts += torch.bincount(bins, minlength=SCORE_BINS).cpu()

    def threshold(self, coverage: float) -> float:
        """Returns the upper edge of the bin that holds the ceil((n + 1) * coverage)-th smallest score."""
        if not 0.0 < coverage < 1.0:
            raise InputError(f"the coverage must lie between 0 and 1, got {coverage}")
        total = int(self._counts.sum())
        rank = math.ceil((total + 1) * coverage)
        if rank > total:
            what = "images" if self.void is None else "pixels"
            raise InputError(f"a coverage of {coverage} needs more than {total} labelled {what}")
        return (int((self._counts.cumsum(0) < rank).sum()) + 1) / SCORE_BINS


def prediction_sets(probs: Tensor, threshold: float) -> Tensor:
    """(K, ...) bool: the classes of every pixel's set; the most probable class is always in."""
    within = probs >= 1.0 - threshold
    return within.scatter_(0, probs.max(0, keepdim=True).indices, True)  # 5 times as fast as argmax


class Coverage:
    """Shares of sets that hold the true class, over all pixels and by image: no guarantee holds for one image."""

    def __init__(self, threshold: float, void: int | None) -> None:
        self.threshold, self.void = threshold, void
        self._images: list[float] = []
        self._covered = self._pixels = self._classes = 0

    def update(self, probs: Tensor, labels: Tensor) -> None:
        """Adds one image: probs (K, ...), labels (...)."""
        labels = settle(probs[None], labels[None], self.void).ids[0]
        kept = kept_positions(labels, self.void)
        if not len(kept):
            return
        sets = prediction_sets(probs.flatten(1)[:, kept], self.threshold)
        covered = int(sets.gather(0, labels.flatten()[kept][None]).sum())
        self._covered, self._pixels = self._covered + covered, self._pixels + len(kept)
        self._classes += int(sets.sum())
        self._images.append(covered / len(kept))

    def result(self) -> dict[str, Any]:
        """Shares of pixels; `set_size` is the mean number of classes in a set."""
        if not self._images:
            raise InputError("no labelled pixel, so no coverage")
        images = sorted(self._images)
        return {
            "coverage": self._covered / self._pixels,
            "coverage_image_mean": sum(images) / len(images),
            "coverage_image_p5": images[int(0.05 * (len(images) - 1))],
            "coverage_image_min": images[0],
            "set_size": self._classes / self._pixels,
        }


def refuse_few_images(count: int, level: float, name: str) -> None:
    """Raises InputError where the corrected risk of `count` images, 1 / (count + 1) or more, exceeds `level`."""
    if not 0.0 < level < 1.0:
        raise InputError(f"the risk must lie between 0 and 1, got {level}")
    needed = math.ceil(1.0 / level - 1e-9) - 1
    if count < needed:
        raise InputError(f"{count} images hold {name}; to bound its misses by {level:g}, {needed} or more are needed")


class ClassRisk:
    """Conformal risk control (Angelopoulos et al. 2022, arXiv 2208.02814) of the missed pixels of one class.

    The class is reported wherever its probability is at least a threshold. The loss of an image is the share of the
    class's pixels that are not reported. Images that hold the class are the exchangeable units.
    """

    def __init__(self, class_id: int, void: int) -> None:
        self.class_id, self.void = class_id, void
        self.images = 0
        # The sum over images of the loss at threshold i / RISK_BINS.
        self._missed = torch.zeros(RISK_BINS + 1, dtype=torch.float64)
        self._reported = torch.zeros(RISK_BINS + 1, dtype=torch.float64)  # pixels of all images reported at it
        self._pixels = 0

    def update(self, probs: Tensor, labels: Tensor) -> None:
        """probs (K, ...), labels (...) of one image."""
        labels = settle(probs[None], labels[None], self.void).ids[0]
        scores = probs[self.class_id]
        valid = labels != self.void
        everywhere = self._below(scores[valid])
        self._reported += everywhere[-1] - everywhere
        self._pixels += int(valid.sum())
        inside = scores[labels == self.class_id]
        if inside.numel():
            self._missed += self._below(inside) / inside.numel()
            self.images += 1

    def control(self, level: float, name: str, views: int = 1) -> dict[str, Any]:
        """The largest threshold whose risk, corrected for n images, (sum + 1) / (n + 1), stays at or below `level`.

        `views`: frames of each image that were added; they count as one image.
        """
        count = self.images // views
        refuse_few_images(count, level, name)
        holds = ((self._missed / views + 1.0) / (count + 1) <= level).nonzero().squeeze(1)
        best = int(holds.max()) if len(holds) else 0  # at threshold 0 nothing is missed
        return {
            "class": name,
            "level": level,
            "threshold": best / RISK_BINS,
            "images": count,
            "risk": float(self._missed[best] / self.images),
            "reported_share": float(self._reported[best] / self._pixels),
        }

    def at(self, threshold: float) -> dict[str, Any]:
        """Returns the metrics of a threshold that was fitted on other data: the missed share of the class and the
        reported share of all pixels. The missed share is a mean over the images that show the class."""
        place = round(threshold * RISK_BINS)
        return {
            "risk": float(self._missed[place] / self.images) if self.images else None,
            "reported_share": float(self._reported[place] / self._pixels) if self._pixels else None,
            "images": self.images,
        }

    def _below(self, scores: Tensor) -> Tensor:
        """(RISK_BINS + 1,) numbers of scores below each threshold i / RISK_BINS."""
        bins = (scores.double() * RISK_BINS).floor().long().clamp_(0, RISK_BINS - 1)  # i / B <= score < (i + 1) / B
        counts = torch.bincount(bins, minlength=RISK_BINS).cpu().double()
        return torch.cat([torch.zeros(1, dtype=torch.float64), counts.cumsum(0)])
