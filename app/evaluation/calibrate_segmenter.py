"""`steadyseg calibrate` of a segmentation network: labelled frames, by one method."""

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from steadyseg.app.console import Console, track
from steadyseg.app.evaluation.data import LabelledData, refuse_memory
from steadyseg.app.evaluation.flags import CalibrateJob
from steadyseg.app.evaluation.int8 import fit_int8
from steadyseg.app.sources.image_folder import list_images
from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.kept_logits import KeptLogits
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.evaluation.temperature import WIDE_GRID, WORTHLESS, BeyondGrid, TemperatureFit, describe_extreme
from steadyseg.core.familiarity.stored import FamiliarityFit
from steadyseg.core.frame import Frame
from steadyseg.core.method import Method, MethodOptions, is_temporal
from steadyseg.core.model.model import Model
from steadyseg.core.model.tensor_file import INT8_PREFIX, below, replaced, weights_alone
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.system.machine import choose_device
from steadyseg.runtime.torch_backend import torch_backend
from steadyseg.seg.calibrate import adjust_head, fit_temperature
from steadyseg.seg.data.label_folder import open_split
from steadyseg.seg.evaluate import predict, seed_frames
from steadyseg.seg.familiarity.fit import default_stages, fit_statistics
from steadyseg.seg.familiarity.frames import Also, Frames

DATA_KEYS = ("data", "split", "protocol", "frames", "frame_list_hash", "mode", "tau", "motion", "average")
"""Keys of a fit that the record of int8 repeats."""


LOOKED_AT = 4
"""Images that are looked at before a fit."""
ABOVE_CHANCE = 0.1
"""Share of the way from chance to all pixels that a network must find of the classes, to be worth a fit."""


class SegmenterFits:
    """A segmentation network and labelled frames."""

    def __init__(self, job: CalibrateJob, model: Model) -> None:
        """Raises InputError if flags, classes and data do not match."""
        protocol = job.protocol
        if protocol == "auto":
            protocol = "stream" if str(job.data) == "street" else "moving-stills"
        self.job, self.labelled = job, LabelledData(job.data, job.split, protocol, None, model)
        options = MethodOptions(**vars(job.method)).or_default(mode="dnn" if protocol == "stills" else "vq-dnn")
        if protocol == "stills":
            refuse_memory(str(options.mode))
        method, device = options.resolve(), choose_device(job.device)
        self.model = with_adjusted_logits(model) if job.logit_adjustment else model
        self.backend = torch_backend(self.model, method, device=device, keep_probs=True)
        self.methods, self.void = [method], self.backend.classes.void_id
        self.class_id = find_class(job.risk_class, self.backend.classes)
        if job.familiarity:
            also = tuple(Also.of(folder, self.backend.classes) for folder in job.also)
            foreign = tuple(list_images(job.foreign)[::2]) if job.foreign else ()
            self.trained = Frames.of(open_split(job.data, "train", self.backend.classes), model.meta, also, foreign)
        chosen = self.labelled.open(self.backend)
        if protocol == "stills" and len(chosen.names) < 2:
            raise InputError(f"{len(chosen.names)} image is too little to fit on; give two or more")
        self.about: dict[str, Any] = {
            "data": job.data.name,
            "split": None if str(job.data) == "street" else job.split,
            "protocol": protocol,
            "frames": len(chosen.names),
            "frame_list_hash": chosen.frame_hash,
        }

    def fit(self, method: Method) -> tuple[TemperatureFit, Iterator[tuple[Tensor, Tensor]]]:
        """Fits the temperature, and fits it again on a wider grid if the first grid was too narrow. Returns the fit,
        and the predictions at this temperature. The network runs once for each frame."""
        self.look()
        network, classes = KeptLogits(self.backend.network), self.backend.classes
        module = self.backend.at_temperature(1.0, network).module
        try:
            fit = fit_temperature(module, self.frames("temperature"), classes)
        except BeyondGrid:
            network.rewind()
            fit = fit_temperature(module, self.frames("temperature, wider"), classes, WIDE_GRID)
            Console(stderr=True).print(describe_extreme(fit.temperature), soft_wrap=True)
        network.rewind()
        self.backend = self.backend.at_temperature(fit.temperature)
        again = Segmenter(self.backend.at_temperature(fit.temperature, network))
        return fit, predict(self.frames("thresholds"), again)

    def look(self) -> None:
        """Says how long the fit takes, by a few pictures, and raises InputError for a network that knows nothing of
        them: it finds the classes no better than by chance, and is right less often than the most frequent class."""
        classes, seen = self.backend.classes, replace(self.labelled, protocol="stills").open(self.backend)
        metrics, began_s = StreamingMetrics(len(classes), classes.void_id), time.perf_counter()
        for probs, labels in predict(islice(seen.frames, LOOKED_AT), Segmenter(self.backend)):
            metrics.update(probs.cpu(), labels)
        a_frame_s, total = (time.perf_counter() - began_s) / LOOKED_AT, self.labelled.open(self.backend).count
        about = f"about {max(1, round(a_frame_s * total))} s"
        Console(stderr=True).print(f"{len(seen.names)} images as {self.about['protocol']}: {total} frames, {about}")
        confusion = metrics.confusion.double()
        pixels = confusion.sum(1)
        chance = 1 / max(1, int((pixels > 0).sum()))
        recall = float((confusion.diagonal()[pixels > 0] / pixels[pixels > 0]).mean()) if pixels.any() else 1.0
        accuracy, most = (float(one / pixels.sum().clamp_min(1)) for one in (confusion.trace(), pixels.max()))
        if (
            chance < 1
            and recall < chance + ABOVE_CHANCE * (1 - chance)
            and accuracy <= most + ABOVE_CHANCE * (1 - most)
        ):
            raise InputError(
                f"the network finds {recall:.0%} of a class's pixels on the first images, and chance {chance:.0%}: "
                f"{WORTHLESS}"
            )

    def frames(self, title: str) -> Iterator[Frame]:
        """Returns the frames, each with a seed for its dropout masks, behind a progress bar."""
        keeps_all = is_temporal(self.methods[0].mode)  # only a mean over time uses frames without a label
        chosen = self.labelled.open(self.backend, labelled_only=not keeps_all)
        frames = track(seed_frames(chosen.frames), title, total=chosen.count)
        return (frame for frame in frames if keeps_all or frame.label is not None)

    def familiarity(self) -> FamiliarityFit:
        """Fits familiarity on the train images, for all methods of the network, and in int8 if it has ranges."""
        network, meta, stages = self.backend.network, self.model.meta, default_stages(self.backend.network)
        device, temperature = torch.device(self.backend.device), self.backend.method.temperature
        rounded = None
        if meta.int8:
            rounded = self.backend.rounded(meta.int8["ranges"], below(self.model.tensors, INT8_PREFIX)).network
        return fit_statistics(network, meta, self.trained, stages, device, temperature, track, rounded)

    def fit_int8(self, record: dict[str, Any]) -> None:
        """Fits int8 on the train images and measures what it loses on the frames of this job; the model has the fit
        from now on. Scales of familiarity of an earlier rounding are dropped."""
        fit, meta = fit_int8(self.job.data, self.backend, self.frames), self.model.meta
        int8 = {key: record[key] for key in DATA_KEYS} | fit.record
        familiarity = {key: one for key, one in meta.familiarity.items() if not key.startswith("int8")}
        meta = dataclasses.replace(meta, int8=int8, familiarity=familiarity)
        self.model = self.model.with_record(meta, replaced(self.model.tensors, INT8_PREFIX, fit.tensors))


def find_class(name: str | None, classes: ClassList) -> int | None:
    """The id of a class; InputError, with all names, for an unknown class."""
    if name is None:
        return None
    if name not in classes.names:
        raise InputError(f"risk class {name}: no such class; this network knows {', '.join(classes.names)}")
    return classes.names.index(name)


def with_adjusted_logits(model: Model) -> Model:
    """Returns the model with logits adjusted for the class weights of its training, without calibration or metrics."""
    tensors = weights_alone(adjust_head(model.tensors, model.meta.training))
    training = model.meta.training | {"class_weights_undone": True}
    meta = dataclasses.replace(model.meta, calibration={}, metrics={}, familiarity={}, int8={}, training=training)
    return model.with_record(meta, tensors)
