"""Every network over every picture, once: per frame the statistics of all stages, and logits on a grid. Resumable by group.

python -m benchmarks.novelty.collect --data ../shared/data --out runs/novelty camvid-unet-s camvid-realtime
"""

import argparse
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.novelty.shots import GROUPS, Data, Shot
from core.classes import CAMVID
from core.dropout import set_dropout_active
from core.novelty.gaussians import GaussianSums
from core.novelty.statistics import STRIDE, FrameDistance, RegionDistance, logit_statistics
from core.preprocess import Normalize, enlarge, network_size, resize
from core.taps import FeatureTaps, tap_points
from export.networks import OpenVinoNetwork, cpu_has_bf16, openvino_model
from seg.torch_segmenter import open_network

GRID = 10
"""Every so many-th pixel's logits are kept."""
VARIANTS = ("clean", "camera")
"""Statistics fitted on the frames as they are, and on them and what other cameras would give."""


class Thinned(nn.Module):
    """(1, 3, h, w) normalised -> logits, and the features of every stage at the places that are looked at."""

    def __init__(self, network: nn.Module, stages: list[str]) -> None:
        super().__init__()
        self.network, self.taps = network, FeatureTaps(network, stages)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        logits, thin = self.network(images), []
        for found in self.taps.take():
            step = max(1, STRIDE // round(images.shape[-2] / found.shape[-2]))
            thin.append(found[..., ::step, ::step])
        return logits, *thin


class Watched:
    """A network with all its stages tapped."""

    def __init__(self, name: str) -> None:
        network, meta = open_network(name)
        self.label = Path(name).stem
        self.network = network.to(memory_format=torch.channels_last).eval()
        set_dropout_active(self.network, False)
        self.normalize, self.height = Normalize(meta.mean, meta.std), meta.height
        names = [stage for stage in tap_points(self.network) if stage != "decoder"]
        self.stages = [stage for stage in names if stage not in ("enc1", "enc2", "enc4")]
        self.thinned = Thinned(self.network, self.stages).eval()

        self.precision = "bf16" if cpu_has_bf16() else "fp32"
        self.compiled: dict[tuple[int, int], Any] = {}

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> tuple[Tensor, dict[str, Tensor], tuple[int, int]]:
        """Logits, thinned features by stage, and the size at which the network saw the picture; OpenVINO as on the page."""
        pixels = torch.from_numpy(np.ascontiguousarray(image))[None].permute(0, 3, 1, 2)
        size = network_size(*image.shape[:2], self.height)
        if size not in self.compiled:
            model = openvino_model(self.thinned, [torch.zeros(1, 3, *size)])
            self.compiled[size] = OpenVinoNetwork(model, self.precision)._request
        request = self.compiled[size]
        request.infer([self.normalize(resize(pixels, size)).contiguous().numpy()], share_inputs=True)
        logits, *found = (torch.from_numpy(tensor.data.copy()) for tensor in request.output_tensors)
        return logits, dict(zip(self.stages, found, strict=True)), size


def labels_at(label: np.ndarray, size: tuple[int, int]) -> Tensor:
    """(H, W) at the places of a stage of that size, which begins in the picture's corner."""
    rows, columns = (
        np.minimum(np.arange(n) * round(length / n) + round(length / n) // 2, length - 1)
        for n, length in zip(size, label.shape, strict=True)
    )
    return torch.from_numpy(label[rows[:, None], columns[None]].astype(np.int64))


def fit(watched: list[Watched], data: Data, out: Path, every: int = 1) -> None:
    sums: dict[tuple[str, str, str], GaussianSums] = {}
    pooled: dict[tuple[str, str], dict[str, list[np.ndarray]]] = {}
    for shot in thinned(GROUPS["fit"](data), every):
        for one in watched:
            _, features, _ = one(shot.image)
            for stage, found in features.items():
                flat = found[0].flatten(1).T
                assert shot.label is not None
                label = labels_at(shot.label, tuple(found.shape[-2:])).flatten()
                for variant in VARIANTS if shot.kind == "clean" else VARIANTS[1:]:
                    key = one.label, variant, stage
                    sums.setdefault(key, GaussianSums(flat.shape[1], len(CAMVID))).update(flat, label)
                pooled.setdefault((one.label, stage), {}).setdefault(shot.kind, []).append(flat.mean(0).numpy())
    for one in watched:
        fits = {key[1:]: total.fit() for key, total in sums.items() if key[0] == one.label}
        means = {stage: kinds for (name, stage), kinds in pooled.items() if name == one.label}
        save(out / one.label / "fit.pickle", {"gaussians": fits, "pooled": means})


Distances = dict[str, tuple[RegionDistance, FrameDistance]]
"""By stage."""


def stage_distances(fit: dict[str, Any], one: Watched) -> dict[str, Distances]:
    """By variant and stage; the features come thinned already."""
    found: dict[str, Distances] = {}
    for (variant, stage), within in fit["gaussians"].items():
        wholes = fit["pooled"][stage]
        pooled = GaussianSums(len(within.mean), 1)
        for row in wholes["clean"] if variant == "clean" else wholes["clean"] + wholes["camera"]:
            pooled.update(torch.from_numpy(row)[None], torch.zeros(1, dtype=torch.long))
        if variant == "camera" or stage in one.stages[-3:]:
            found.setdefault(variant, {})[stage] = RegionDistance.of(within, 1), FrameDistance.of(pooled.fit())
    return found


def describe(distances: tuple[RegionDistance, FrameDistance], features: Tensor) -> list[float]:
    """Mean and deviation of the log distances to the nearest class, and the log distance of the frame's mean."""
    regions, frame = distances
    logs = regions(features)
    return [float(logs.mean()), float(logs.std(unbiased=False)), float(frame(features))]


def look(one: Watched, shot: Shot, fits: dict[str, Distances]) -> dict[str, Any]:
    logits, features, size = one(shot.image)
    with torch.inference_mode():
        statistics = {
            variant: {stage: describe(found, features[stage]) for stage, found in stages.items()}
            for variant, stages in fits.items()
        }
    own = logit_statistics(logits)[0].numpy()
    logits = enlarge(logits, size)
    seen = logits[..., ::STRIDE, ::STRIDE]
    energy = float(torch.logsumexp(seen, 1).mean())
    record: dict[str, Any] = {
        "kind": shot.kind, "name": shot.name, "statistics": statistics, "energy": energy,
        "max_logit": float(seen.amax(1).mean()), "logit": own,
        "pooled": {stage: found[0].flatten(1).mean(1).numpy() for stage, found in features.items()},
        "grid": logits[0, :, GRID // 2 :: GRID, GRID // 2 :: GRID].flatten(1).half().numpy(),
    }  # fmt: skip
    if shot.label is not None:
        label = labels_at(shot.label, size) if shot.label.shape != size else torch.from_numpy(shot.label)
        record["label"] = label[GRID // 2 :: GRID, GRID // 2 :: GRID].flatten().numpy().astype(np.uint8)
        kept = label != CAMVID.void_id
        record["accuracy"] = float((logits[0].argmax(0) == label)[kept].float().mean())
    return record


def thinned(shots: Iterator[Shot], every: int) -> Iterator[Shot]:
    """Only each `every`-th picture, with all that was made of it."""
    places: dict[str, int] = {}
    return (shot for shot in shots if places.setdefault(shot.name, len(places)) % every == 0)


def save(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(value))
    partial.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="only each so many-th picture")
    parser.add_argument("--out", type=Path, default=Path("runs/novelty"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    data, watched = Data(given.data), [Watched(name) for name in given.models]
    for group, shots in GROUPS.items():
        missing = [one for one in watched if not (given.out / one.label / f"{group}.pickle").exists()]
        if not missing:
            continue
        started = time.perf_counter()
        if group == "fit":
            fit(missing, data, given.out, given.every)
        else:
            fits = {
                one.label: stage_distances(pickle.loads((given.out / one.label / "fit.pickle").read_bytes()), one)
                for one in missing
            }
            rows: dict[str, list[dict[str, Any]]] = {one.label: [] for one in missing}
            for shot in thinned(shots(data), given.every):
                for one in missing:
                    rows[one.label].append(look(one, shot, fits[one.label]))
            for one in missing:
                save(given.out / one.label / f"{group}.pickle", rows[one.label])
        print(f"{group}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
