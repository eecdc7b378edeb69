"""SteadySeg as a library: every public name in one place. Each is imported when it is first used, so this import is
instant.

    from steadyseg import open_segmenter, open_source, segment

docs/usage.md lists the names by purpose; their own modules document them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers read; tests/test_public.py holds it equal to `_MODULES`
    from app.classifiers import open_classifier as open_classifier
    from app.export.command import run_export as run_export
    from app.export.flags import ExportJob as ExportJob
    from app.hub import HubModel as HubModel
    from app.open_model import open_model as open_model
    from app.open_model import open_segmenter as open_segmenter
    from app.sources.open_source import open_source as open_source
    from app.sources.read_ahead import read_ahead as read_ahead
    from app.sources.source import Source as Source
    from app.steady import steady as steady
    from app.video.render import draw_overlay as draw_overlay
    from app.video.render import draw_uncertainty as draw_uncertainty
    from classification.data.open import open_classification as open_classification
    from core.dropout import Dropout as Dropout
    from core.dropout import set_dropout_active as set_dropout_active
    from core.errors import InputError as InputError
    from core.evaluation.conformal import ConformalScores as ConformalScores
    from core.evaluation.conformal import prediction_sets as prediction_sets
    from core.evaluation.metrics import StreamingMetrics as StreamingMetrics
    from core.evaluation.temperature import TemperatureScan as TemperatureScan
    from core.frame import Frame as Frame
    from core.frame import Maps as Maps
    from core.insertion import InsertionPoint as InsertionPoint
    from core.insertion import PrependedLayer as PrependedLayer
    from core.insertion import insert_dropout as insert_dropout
    from core.insertion import insert_smoothing as insert_smoothing
    from core.insertion import subsampling_points as subsampling_points
    from core.method import Method as Method
    from core.method import MethodOptions as MethodOptions
    from core.prediction import Prediction as Prediction
    from core.predictors import Ensemble as Ensemble
    from core.predictors import MonteCarlo as MonteCarlo
    from core.predictors import OnePass as OnePass
    from core.predictors import forward_passes as forward_passes
    from core.predictors import running_mean as running_mean
    from core.preprocess import Normalize as Normalize
    from core.segmenter import Segmenter as Segmenter
    from core.segmenter import segment as segment
    from core.smoothing import Blur as Blur
    from core.smoothing import Prob as Prob
    from core.smoothing import SpatialSmoothing as SpatialSmoothing
    from core.temporal import TemporalSmoothing as TemporalSmoothing
    from seg.street.drive import Street as Street

    __version__: str

_NAMES = {
    # segment a stream
    "app.open_model": "open_model open_segmenter",
    "app.steady": "steady",
    "core.method": "Method MethodOptions",
    "core.segmenter": "Segmenter segment",
    "core.frame": "Frame Maps",
    "app.video.render": "draw_overlay draw_uncertainty",
    # sources of frames
    "app.sources.open_source": "open_source",
    "app.sources.source": "Source",
    "app.sources.read_ahead": "read_ahead",
    "seg.street.drive": "Street",
    # the methods, for networks of one's own
    "core.smoothing": "Blur Prob SpatialSmoothing",
    "core.insertion": "InsertionPoint PrependedLayer insert_dropout insert_smoothing subsampling_points",
    "core.dropout": "Dropout set_dropout_active",
    "core.temporal": "TemporalSmoothing",
    "core.prediction": "Prediction",
    "core.predictors": "Ensemble MonteCarlo OnePass forward_passes running_mean",
    "core.preprocess": "Normalize",
    # classifiers, and labelled pictures
    "app.classifiers": "open_classifier",
    "classification.data.open": "open_classification",
    # evaluation and calibration
    "core.evaluation.metrics": "StreamingMetrics",
    "core.evaluation.temperature": "TemperatureScan",
    "core.evaluation.conformal": "ConformalScores prediction_sets",
    # export
    "app.export.flags": "ExportJob",
    "app.export.command": "run_export",
    # the Hugging Face Hub
    "app.hub": "HubModel",
    # what bad input raises
    "core.errors": "InputError",
}
"""Public names by their module."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # 20 ms, which not every import should pay

        value: Any = version("steadyseg")
    elif name in _MODULES:
        value = getattr(importlib.import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
