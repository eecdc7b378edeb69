"""The arithmetic mean along the motion beside single frames and the published window, all at temperature 1.

    python -m steadyseg.studies.results.rule --data data/camvid [--fresh]

Rows are kept while weights and data stay the same; --fresh measures them again.
`changes` is how predictions change along the val stream. `unseen` is the rule on moving stills that its choice did not
see.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.frame import Frame, Maps
from steadyseg.core.method import MOTION_TAU
from steadyseg.core.model.model import Model
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.prediction import Prediction
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.core.seeds import mix_seed
from steadyseg.core.segmenter import Continuity
from steadyseg.core.system.machine import keep_freed_memory
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.data.moving_stills import moving_stills
from steadyseg.seg.evaluate import FrameMetrics
from steadyseg.seg.pretrained import find_checkpoint, read_segmenter
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, Cache, data_digest, digest_of_weights, origin
from steadyseg.studies.harness.window import WindowSmoothing
from steadyseg.studies.results.front import SHOWN, run_command, unseen_stills

VERSION = 3
"""Raised whenever the meaning of a row changes: then all rows are measured again."""
WINDOW, MOTION = WindowSmoothing(tau=1.25, window=5), TemporalSmoothing(tau=MOTION_TAU, motion=True)
"""The published window, and the arithmetic mean along the motion."""
METHODS: dict[str, tuple[bool, WindowSmoothing | TemporalSmoothing | None]] = {
    "dnn": (False, None),
    "vq-dnn": (False, WINDOW),
    "vq-dnn motion": (False, MOTION),
    "vq-bnn": (True, WINDOW),
    "vq-bnn motion": (True, MOTION),
}
"""By row: whether the one pass of a frame has dropout masks, and the mean over time."""
PROTOCOLS = {"changes": tuple(METHODS), "unseen": tuple(METHODS)[:3]}
"""Rows of each protocol."""
KEYS = tuple("nll accuracy miou ece consistency label_consistency change_agreement change_agreement_frozen".split())


def run(data: Path, fresh: bool) -> None:
    """Measures what is missing, then writes the page."""
    torch.set_num_threads(1)
    keep_freed_memory()  # a tenth of the time would be page faults
    cache, frames = Cache(PAGES / "results" / "record.json"), data_digest(data)
    for name in SHOWN:
        digest = rule_digest(name, frames)
        if fresh or cache.get(rule_job(name), digest) is None:
            model = read_segmenter(name)
            rows = {protocol: measure(model, frames_of(protocol, data), of) for protocol, of in PROTOCOLS.items()}
            about = {**origin(), "trained_by": [str(model.meta.training["command"])], "seed": 0}
            cache.put(rule_job(name), digest, {"fits": {}, **rows}, about)
            print(f"{name}: done", flush=True)
    write_page("results")


def rule_job(network: str) -> str:
    """The entry of a network's rows in the record."""
    return f"{network} default rule"


def rule_digest(network: str, data: str) -> str:
    """Digest of the data and of the weights alone: the rows use no fit of the file's header."""
    return f"v{VERSION}-{data}-{digest_of_weights(find_checkpoint(network))}"


def frames_of(protocol: str, data: Path) -> Iterator[Frame]:
    if protocol == "unseen":
        return moving_stills(open_split(data, "test").subset(unseen_stills(data)))
    return open_split(data, "val").frames()


def measure(model: Model, frames: Iterable[Frame], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Walks once over the frames: rows of the same pass share it."""
    meta, network = model.meta, model.network().to(memory_format=torch.channels_last)
    normalize, stride = Normalize(meta.mean, meta.std), getattr(network, "head_stride", 1)
    metrics, states = {name: FrameMetrics.of(meta.classes) for name in names}, dict[str, Any]()
    continuity, estimate_motion = Continuity(), MotionEstimator()
    for place, frame in enumerate(frames):
        gap = continuity.gap_before(frame)
        height, width = (-(-length // stride) for length in (meta.height, meta.width))
        motion = estimate_motion(frame.image, (height, width), gap)
        with torch.inference_mode():
            pixels = torch.from_numpy(frame.image)[None].permute(0, 3, 1, 2)
            batch = normalize(resize(pixels, (meta.height, meta.width)))
            passes = {
                has_masks: predict(network, batch, has_masks, place) for has_masks in {METHODS[n][0] for n in names}
            }
            for name in names:
                has_masks, smoothing = METHODS[name]
                seen = passes[has_masks]
                if smoothing is not None:
                    state, followed = states.get(name) if gap else None, motion if smoothing.motion else None
                    seen, states[name] = smoothing(seen, state, max(gap, 1), followed)
                if frame.label is not None:
                    metrics[name].update(frame, as_maps(seen))
    found = {name: metrics[name].result() for name in names}
    return {name: describe(name) | {key: found[name][key] for key in KEYS} for name in names}


def predict(network: Any, batch: torch.Tensor, has_masks: bool, place: int) -> Prediction:
    """One pass; masks depend on the frame's place alone. The members' entropies, which no row reads, are 0."""
    set_dropout_active(network, has_masks)
    torch.manual_seed(mix_seed(0, place))
    probs = network(batch).float().contiguous().softmax(1)  # in channels_last a softmax takes 2.5 times as long
    return Prediction(probs, probs.new_zeros(()).expand(probs.shape[:1] + probs.shape[2:]))


def as_maps(seen: Prediction) -> Maps:
    none = torch.empty(0, dtype=torch.uint8).numpy()
    return Maps(none, none, none, none, seen.probs[0].numpy())


def describe(name: str) -> dict[str, Any]:
    """The flags of `steadyseg evaluate` that make the row again."""
    has_masks, smoothing = METHODS[name]
    mode = "bnn" if has_masks else "dnn"
    return {
        "mode": f"vq-{mode}" if smoothing else mode,
        "samples": 1,
        "tau": smoothing.tau if smoothing else None,
        "window": smoothing.window if isinstance(smoothing, WindowSmoothing) else None,
        "motion": smoothing.motion if smoothing else False,
        "temperature": 1.0,
        "undone": False,
    }


if __name__ == "__main__":
    sys.exit(run_command("rule", __doc__, run))
