"""The way of a training's weights, projected on the two directions in which they moved most (Li et al. 2018, Sec. 7).

The rows of a matrix are the weights of each kept checkpoint minus the last weights. Its first two principal directions
from the last point (not from the mean) span the plane. A random walk projects to a smooth curve too, and most
movement in other directions is hidden. So the picture shows where the checkpoints lie, no mechanism.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.studies.analysis.measures.landscape import Weights


@dataclass(frozen=True)
class Trajectory:
    """A plane through the last weights."""

    directions: tuple[Weights, Weights]
    """Orthogonal directions of length 1."""
    places: list[tuple[float, float]]
    """Coordinates of every checkpoint along the directions; the last is (0, 0)."""
    explained: tuple[float, float]
    """Share of the squared distances that each direction holds."""


def project(checkpoints: Sequence[Mapping[str, Tensor]], names: Sequence[str]) -> Trajectory:
    """Projects three or more checkpoints, oldest first, over the tensors of these names."""
    if len(checkpoints) < 3:
        raise InputError(f"a trajectory needs three or more checkpoints, got {len(checkpoints)}")
    last = checkpoints[-1]
    rows = torch.stack(
        [torch.cat([(point[name] - last[name]).double().reshape(-1) for name in names]) for point in checkpoints[:-1]]
    )
    gram = rows @ rows.T  # few checkpoints, many weights
    values, vectors = torch.linalg.eigh(gram)
    total = float(values.clamp(min=0.0).sum())
    if total <= 0.0 or float(values[-2]) <= 1e-12 * total:
        raise InputError("the checkpoints lie on one line, or are all the same: there is no plane to project them on")
    found, shares = [], []
    for place in (-1, -2):
        direction = rows.T @ vectors[:, place]
        direction = direction / direction.norm()
        if float(rows[0] @ direction) < 0:  # the sign is arbitrary: the first checkpoint lies on the positive side
            direction = -direction
        found.append(direction)
        shares.append(float(values[place]) / total)
    places = [(float(row @ found[0]), float(row @ found[1])) for row in rows] + [(0.0, 0.0)]
    split = [_named(direction, last, names) for direction in found]
    return Trajectory((split[0], split[1]), places, (shares[0], shares[1]))


def _named(direction: Tensor, like: Mapping[str, Tensor], names: Sequence[str]) -> Weights:
    sizes = [like[name].numel() for name in names]
    return {
        name: part.view_as(like[name]).to(like[name]) for name, part in zip(names, direction.split(sizes), strict=True)
    }
