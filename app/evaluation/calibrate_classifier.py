"""`steadyseg calibrate` of an image classifier: labelled pictures, by each mode."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor

from steadyseg.app.classifiers import CheckpointClassifier
from steadyseg.app.console import track
from steadyseg.app.evaluation.flags import CalibrateJob
from steadyseg.classification.data.open import TRAINED, open_split_of
from steadyseg.classification.evaluate import Batch, batch_size, batches, fit_temperature, predict
from steadyseg.classification.familiarity import default_stages, fit_statistics
from steadyseg.classification.pretrained import require_classes
from steadyseg.core.dropout import set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.kept_logits import KeptLogits
from steadyseg.core.evaluation.temperature import TemperatureFit
from steadyseg.core.familiarity.stored import FamiliarityFit
from steadyseg.core.method import Method, MethodOptions
from steadyseg.core.model.model import Model
from steadyseg.core.system.machine import choose_device
from steadyseg.runtime.open_model import frame_flags, refuse_flags


class ClassifierFits:
    """An image classifier and labelled pictures."""

    void = class_id = None

    def __init__(self, job: CalibrateJob, model: Model) -> None:
        """Raises InputError for flags about frames, and for data of other classes."""
        refuse_flags(
            job.model,
            {
                f"--protocol {job.protocol}": job.protocol not in ("auto", "stills"),
                **frame_flags(job.method),
                "--risk-class": job.risk_class is not None,
                "--logit-adjustment": job.logit_adjustment,
                "--int8": job.int8,
                "--also": bool(job.also),
                "--foreign": job.foreign is not None,
            },
        )
        if job.familiarity and job.split == "train":
            raise InputError(
                "--familiarity --split train: it is fitted on pictures that it was not trained on; give another"
            )
        if job.familiarity and job.method.mode == "bnn":
            raise InputError(
                "--familiarity --mode bnn: a classifier tells familiarity without dropout; use --mode dnn or omit it"
            )
        self.job, self.model = job, model
        plain = model.with_record(replace(model.meta, calibration={}, familiarity={}))
        opened = CheckpointClassifier(plain, MethodOptions(**vars(job.method)), [], choose_device(job.device), 0)
        self.classifier, self.methods = opened.classifier, list(opened.methods.values())
        [self.network] = self.classifier.networks
        self.data = opened.open_data(job.data, job.split)
        require_classes(self.data.classes, opened.classes, str(job.data), job.model)
        self.about: dict[str, Any] = {
            "data": self.data.name,
            "split": job.split,
            "frames": len(self.data),
            "frame_list_hash": self.data.list_hash,
        }

    def fit(self, method: Method) -> tuple[TemperatureFit, Iterator[tuple[Tensor, Tensor]]]:
        """Fits the temperature; returns the fit, and the predictions at this temperature. The network runs once for
        each picture."""
        mode, passes, classes = method.mode, method.samples, len(self.model.meta.classes)
        kept = KeptLogits(self.network)
        self.classifier.networks = [kept]
        found = fit_temperature(self.classifier, self.batches(f"{mode} temperature"), mode, passes, classes)
        kept.rewind()
        pictures = self.batches(f"{mode} thresholds")
        return found, predict(self.classifier, pictures, mode, passes, round(found.temperature, 4))

    def batches(self, title: str) -> Iterator[Batch]:
        """Returns the pictures behind a progress bar."""
        size = self.model.meta.height
        return track(batches(self.data, size), title, total=-(-len(self.data) // batch_size(size)))

    def familiarity(self) -> FamiliarityFit:
        """Fits familiarity on the network's training pictures and on the pictures of the split."""
        network, meta = self.network, self.model.meta
        set_dropout_active(network, False)
        trained, stages = open_split_of(self.job.data, TRAINED, meta, self.job.model), default_stages(network)
        return fit_statistics(network, meta, trained, self.data, stages, self.classifier.device, track)
