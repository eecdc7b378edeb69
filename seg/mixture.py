"""Training on several data folders at once: equal shares of every batch, and labels as sets of allowed classes."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from steadyseg.core.classes import ClassList
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.distributed import Processes
from steadyseg.seg.data.coarse import as_sets, is_coarse, pack_label
from steadyseg.seg.data.label_folder import has_split, open_split
from steadyseg.seg.options import SegTrainConfig
from steadyseg.seg.training_set import KEPT_BYTES, LabelledImages


@dataclass(frozen=True)
class Mixture(Dataset[tuple[np.ndarray, np.ndarray]]):
    """The pictures of several sources, one source after the other, with packed labels (`pack_label`)."""

    classes: ClassList
    sources: tuple[LabelledImages, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of pictures of each source."""
        return tuple(map(len, self.sources))

    @property
    def drawn(self) -> int:
        """Number of pictures of an epoch: each source gives as many as the mean source has."""
        return sum(self.sizes) // len(self.sources) * len(self.sources)

    def __len__(self) -> int:
        return sum(self.sizes)

    def __getitem__(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        number = bisect(starts := [0, *accumulate(self.sizes)], place) - 1
        images = self.sources[number]
        image, label = images[place - starts[number]]
        return image, pack_label(as_sets(label, self.classes), images.choice(place - starts[number]))


def mix(config: SegTrainConfig, classes: ClassList, first: LabelledImages) -> Mixture | None:
    """Returns the first source with all further folders; None for a single source whose labels are class ids."""
    others = open_others(config, classes, "train").values()
    if not others and not is_coarse(first[0][1]):
        return None
    return Mixture(classes, (first, *others))


def open_others(config: SegTrainConfig, classes: ClassList, split: str) -> dict[str, LabelledImages]:
    """Opens a split of each further folder, by the folder's name; for val, of those that have one."""
    found = [folder for folder in map(Path, config.also) if split == "train" or has_split(folder, split)]
    opened = {folder.name: open_split(folder, split, classes) for folder in found}
    return {name: LabelledImages(one, range(len(one)), KEPT_BYTES / len(opened)) for name, one in opened.items()}


def mixed_order(sizes: Sequence[int], config: TrainConfig, epoch: int, processes: Processes) -> list[int]:
    """Returns the sample numbers of an epoch in this process's order, the sources in turn.

    Each source (see `Mixture.drawn`) goes through all its pictures, in a new
    order each time, before one comes again; where it stopped, the next epoch goes on.
    """
    each, starts = sum(sizes) // len(sizes), np.cumsum([0, *sizes])
    columns = [
        _draw(size, epoch * each, each, config.seed, source) + starts[source] for source, size in enumerate(sizes)
    ]
    order = torch.stack(columns, 1).flatten()
    per_step = config.batch_size * config.accumulate * processes.count
    return processes.share(order[: len(order) // per_step * per_step], config.batch_size).tolist()


def _draw(size: int, first: int, count: int, seed: int, source: int) -> torch.Tensor:
    """Returns `count` numbers of an endless row of permutations of 0..size-1, from place `first` on."""
    rounds = range(first // size, (first + count - 1) // size + 1)
    generators = (torch.Generator().manual_seed(mix_seed(seed, source, one)) for one in rounds)
    row = torch.cat([torch.randperm(size, generator=generator) for generator in generators])
    return row[first % size :][:count]
