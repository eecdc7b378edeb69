"""Area under the ROC curve of a score that should separate pictures inside the training domain from others."""

import torch
from torch import Tensor

from steadyseg.core.errors import InputError


def auroc(inside: Tensor, outside: Tensor) -> float:
    """P(outside score > inside score) + P(equal scores) / 2, over all pairs of samples (Mann and Whitney 1947).

    inside (N,), outside (M,): scores that should be higher outside, such as uncertainties. 0.5 is chance, 1 is perfect.
    Exact, in O((N + M) log N). Raises InputError where a side is empty or a score is NaN.
    """
    for name, scores in (("inside", inside), ("outside", outside)):
        if scores.ndim != 1 or not scores.numel():
            raise InputError(f"AUROC needs scores (N,) of both sides, got {tuple(scores.shape)} {name}")
        if bool(scores.isnan().any()):
            raise InputError(f"AUROC needs numbers, got NaN among the scores {name}")
    ordered, outside = inside.double().sort().values, outside.double()
    below = torch.searchsorted(ordered, outside, right=False)
    up_to = torch.searchsorted(ordered, outside, right=True)  # below + ties, so the two have every tie once
    return int((below + up_to).sum()) / (2 * inside.numel() * outside.numel())
