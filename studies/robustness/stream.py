"""Study `stream`: temporal averaging on the val stream of a segmentation set, clean and corrupted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyseg.core.corruptions.corruptions import corrupt
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.method import Method, MethodOptions, settings
from steadyseg.core.motion import MotionEstimator
from steadyseg.core.prediction import Prediction
from steadyseg.core.seeds import mix_seed
from steadyseg.core.temporal import State, smoothing_of
from steadyseg.seg.data.label_folder import ImageFolderSplit, open_split
from steadyseg.studies.harness.pictures import Pictures
from steadyseg.studies.harness.target import TargetNetwork, at_size_of
from steadyseg.studies.harness.window import WindowSmoothing, WindowState
from steadyseg.studies.robustness.flags import STREAM_SEVERITIES, STREAM_TYPES, RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.tally import Row, figures

PUBLISHED = WindowSmoothing()
"""The paper's temporal mean, which is computed here alone."""
FOLLOWING = MethodOptions("vq-dnn").resolve()
DETERMINISTIC = (Method("dnn"), MethodOptions("vq-dnn", motion=False).resolve(), FOLLOWING)
"""The second one's mean is `PUBLISHED`."""
RANDOM = (MethodOptions("vq-bnn").resolve(),)


def study_stream(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`rows` by type and severity (type clean, severity 0: as they are); every frame is corrupted once for all
    networks."""
    split = val_stream(pictures, subjects[0], options.stream_frames)
    frames = [split[number] for number in range(len(split))]
    types = options.types or STREAM_TYPES
    severities = sorted(options.severities) or list(STREAM_SEVERITIES)
    cells = [("clean", 0), *product(types, severities)]
    rows: list[Row] = []
    for name, severity in watch(cells, "stream"):
        streams = [Stream(subject, method) for subject in subjects for method in stream_methods(subject)]
        for place, (image, label) in enumerate(frames):
            shown = corrupt(image, name, severity, options.seed, split.examples[place].index) if severity else image
            truth = torch.from_numpy(label)[None].long()
            for subject in subjects:
                step(subject, [s for s in streams if s.subject is subject], shown, truth, mix_seed(options.seed, place))
        rows += [stream.row(type=name, severity=severity) for stream in streams]
    notes = [
        f"the first {len(frames)} frames of val as one stream; a frame's corruption is drawn anew, whatever the one "
        "before it"
    ]
    if not options.types:
        notes.append(f"the stream has {len(types)} types alone: {', '.join(types)}; --config types names others")
    if not options.severities:
        notes.append(
            f"the stream has severities {', '.join(map(str, severities))} alone; --config severities names others"
        )
    if not any(subject.has_dropout for subject in subjects):
        notes.append("no vq-bnn: no dropout to draw")
    return {
        "frames": len(frames),
        "frame_list_hash": split.frame_hash,
        "types": list(types),
        "severities": severities,
        "rows": rows,
        "notes": notes,
    }


def stream_methods(subject: TargetNetwork) -> tuple[Method, ...]:
    return DETERMINISTIC + (RANDOM if subject.has_dropout else ())


def val_stream(pictures: Pictures, subject: TargetNetwork, frames: int) -> ImageFolderSplit:
    """The first images of val, which CamVid has as consecutive frames; InputError where there are fewer than two."""
    split = open_split(pictures.root, "val", subject.meta.classes)
    kept = replace(split, examples=split.examples[:frames])
    if len(kept) < 2:
        raise InputError(f"{pictures.root / 'val'}: a stream needs two or more frames, got {len(kept)}")
    return kept


class Stream:
    """The state and the metrics of one network and method along the frames."""

    def __init__(self, subject: TargetNetwork, method: Method) -> None:
        self.subject, self.method = subject, method
        self.metrics = StreamingMetrics(len(subject), subject.meta.classes.void)
        self.window = None if method.tau is None or method.motion else PUBLISHED.window
        self.rule: Any = None
        if method.tau is not None:
            self.rule = smoothing_of(method) if method.motion else PUBLISHED
        # No temperature is fitted for the paper's mean.
        self.temperature = 1.0 if self.window else subject.temperature(method)
        self.state: State | WindowState | None = None
        self.estimate_motion = MotionEstimator()
        self.begun = False

    def add(self, logits: Tensor, image: np.ndarray, truth: Tensor) -> None:
        """Adds a frame: logits (1, K, h, w), image (H, W, 3), labels (1, H, W)."""
        seen = Prediction.from_logits(logits, self.temperature)
        rule = self.rule
        if rule:
            size = tuple(logits.shape[-2:])
            motion = self.estimate_motion(image, (size[0], size[1]), int(self.begun)) if rule.motion else None
            seen, self.state = rule(seen, self.state, 1, motion)
        self.metrics.update(at_size_of(seen.probs, truth), truth, continues=self.begun)
        self.begun = True

    def row(self, **about: Any) -> Row:
        consistency = self.metrics.result()["consistency"]
        measured = figures(self.metrics, self.subject.is_segmentation)
        method = settings(self.method) | {"window": self.window}
        return {"model": self.subject.name, **method, **about, **measured, "consistency": consistency}


@torch.inference_mode()
def step(subject: TargetNetwork, streams: Sequence[Stream], image: np.ndarray, truth: Tensor, seed: int) -> None:
    """One frame through a network: a pass without dropout for all streams that take one, and a random one for the
    others."""
    batch = subject.normalize(subject.pixels([image]))
    for mode, mine in by_pass(streams):
        logits = subject.logits(batch, mode, seed)
        for stream in mine:
            stream.add(logits, image, truth)


def by_pass(streams: Sequence[Stream]) -> Iterator[tuple[str, list[Stream]]]:
    for mode in ("dnn", "bnn"):
        mine = [stream for stream in streams if stream.method.mode.endswith(mode)]
        if mine:
            yield mode, mine
