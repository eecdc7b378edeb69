"""Every network over every picture, once: per frame the statistics of all stages, and logits on a grid. Resumable by group.

python -m benchmarks.novelty.collect --data ../shared/data --out runs/novelty camvid-unet-s camvid-realtime
"""

import argparse
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.novelty.shots import GROUPS, Data, Shot
from core.classes import CAMVID
from core.dropout import set_dropout_active
from core.novelty.gaussians import Gaussians, GaussianSums
from core.novelty.statistics import STRIDE, logit_statistics
from core.preprocess import Normalize, enlarge, network_size, resize
from core.taps import FeatureTaps, tap_points
from seg.torch_segmenter import open_network

GRID = 10
"""Every so many-th pixel's logits are kept."""
VARIANTS = ("clean", "camera")
"""Statistics fitted on the frames as they are, and on them and what other cameras would give."""


class Watched:
    """A network with all its stages tapped."""

    def __init__(self, name: str) -> None:
        network, meta = open_network(name)
        self.name = Path(name).stem
        self.network = network.to(memory_format=torch.channels_last).eval()
        set_dropout_active(self.network, False)
        self.normalize, self.height = Normalize(meta.mean, meta.std), meta.height
        self.stages = [stage for stage in tap_points(self.network) if stage != "decoder"]
        self.taps = FeatureTaps(self.network, self.stages)

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> tuple[Tensor, dict[str, Tensor], tuple[int, int]]:
        pixels = torch.from_numpy(np.ascontiguousarray(image))[None].permute(0, 3, 1, 2)
        size = network_size(*image.shape[:2], self.height)
        logits = enlarge(self.network(self.normalize(resize(pixels, size))), size)
        features = {}
        for stage, found in zip(self.stages, self.taps.take(), strict=True):
            ratio = round(size[0] / found.shape[-2])
            step = max(1, STRIDE // ratio)
            features[stage] = found[..., ::step, ::step]
        return logits, features, size


def labels_at(label: np.ndarray, size: tuple[int, int]) -> Tensor:
    """(H, W) at the places of a stage of that size, which begins in the picture's corner."""
    rows, columns = (
        np.minimum(np.arange(n) * round(length / n) + round(length / n) // 2, length - 1)
        for n, length in zip(size, label.shape, strict=True)
    )
    return torch.from_numpy(label[rows[:, None], columns[None]].astype(np.int64))


def fit(watched: list[Watched], data: Data, out: Path) -> None:
    sums: dict[tuple[str, str, str], GaussianSums] = {}
    pooled: dict[tuple[str, str], dict[str, list[np.ndarray]]] = {}
    for shot in GROUPS["fit"](data):
        for one in watched:
            _, features, _ = one(shot.image)
            for stage, found in features.items():
                flat = found[0].flatten(1).T
                assert shot.label is not None
                label = labels_at(shot.label, tuple(found.shape[-2:])).flatten()
                for variant in VARIANTS if shot.kind == "clean" else VARIANTS[1:]:
                    key = one.name, variant, stage
                    sums.setdefault(key, GaussianSums(flat.shape[1], len(CAMVID))).update(flat, label)
                pooled.setdefault((one.name, stage), {}).setdefault(shot.kind, []).append(flat.mean(0).numpy())
    for one in watched:
        fits = {key[1:]: total.fit() for key, total in sums.items() if key[0] == one.name}
        means = {stage: kinds for (name, stage), kinds in pooled.items() if name == one.name}
        save(out / one.name / "fit.pickle", {"gaussians": fits, "pooled": means})


def frame_statistics(gaussians: Gaussians, found: Tensor) -> dict[str, Any]:
    """Moments of the log distances of a stage."""
    flat = found[0].flatten(1).T
    matrix = gaussians.matrix.float()
    white = (flat - gaussians.mean.float()) @ matrix.T
    centres = gaussians.centres.float()
    nearest = ((white**2).sum(1, keepdim=True) - 2 * white @ centres.T + (centres**2).sum(1)).amin(1)
    logs = (nearest.clamp_min(0) / white.shape[1] + 1e-6).log().double()
    return {"distance": float(logs.mean()), "spread": float(logs.std(unbiased=False)), "median": float(logs.median())}


def look(one: Watched, shot: Shot, fits: dict[tuple[str, str], Gaussians]) -> dict[str, Any]:
    logits, features, size = one(shot.image)
    statistics = {
        variant: {stage: frame_statistics(fits[variant, stage], found) for stage, found in features.items()}
        for variant in VARIANTS
    }
    energy = float(torch.logsumexp(logits, 1).mean())
    record: dict[str, Any] = {
        "kind": shot.kind, "name": shot.name, "statistics": statistics, "energy": energy,
        "max_logit": float(logits.amax(1).mean()), "logit": logit_statistics(logits)[0].numpy(),
        "pooled": {stage: found[0].flatten(1).mean(1).numpy() for stage, found in features.items()},
        "grid": logits[0, :, GRID // 2 :: GRID, GRID // 2 :: GRID].flatten(1).half().numpy(),
    }  # fmt: skip
    if shot.label is not None:
        label = labels_at(shot.label, size) if shot.label.shape != size else torch.from_numpy(shot.label)
        record["label"] = label[GRID // 2 :: GRID, GRID // 2 :: GRID].flatten().numpy().astype(np.uint8)
        kept = label != CAMVID.void_id
        record["accuracy"] = float((logits[0].argmax(0) == label)[kept].float().mean())
    return record


def save(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(value))
    partial.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/novelty"))
    given = parser.parse_args()
    torch.set_num_threads(2)
    data, watched = Data(given.data), [Watched(name) for name in given.models]
    for group, shots in GROUPS.items():
        missing = [one for one in watched if not (given.out / one.name / f"{group}.pickle").exists()]
        if not missing:
            continue
        started = time.perf_counter()
        if group == "fit":
            fit(missing, data, given.out)
        else:
            fits = {
                one.name: pickle.loads((given.out / one.name / "fit.pickle").read_bytes())["gaussians"]
                for one in missing
            }
            rows: dict[str, list[dict[str, Any]]] = {one.name: [] for one in missing}
            for shot in shots(data):
                for one in missing:
                    rows[one.name].append(look(one, shot, fits[one.name]))
            for one in missing:
                save(given.out / one.name / f"{group}.pickle", rows[one.name])
        print(f"{group}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
