"""SteadySeg as a library: every public name in one place. Each is imported when it is first used, so this import is
instant.

    from steadyseg import open_segmenter, open_source, segment

docs/reference/cli.md lists the names by purpose; their own modules document them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers read; tests/test_public.py holds it equal to `_MODULES`
    from steadyseg.app.classifiers import open_classifier as open_classifier
    from steadyseg.app.export.command import run_export as run_export
    from steadyseg.app.export.flags import ExportJob as ExportJob
    from steadyseg.app.export.steady import steady as steady
    from steadyseg.app.hub import HubModel as HubModel
    from steadyseg.app.palette import draw_overlay as draw_overlay
    from steadyseg.app.sources.open_source import open_source as open_source
    from steadyseg.app.sources.read_ahead import read_ahead as read_ahead
    from steadyseg.app.sources.source import Source as Source
    from steadyseg.app.video.render import draw_uncertainty as draw_uncertainty
    from steadyseg.classification.data.open import open_classification as open_classification
    from steadyseg.core.dropout import Dropout as Dropout
    from steadyseg.core.dropout import set_dropout_active as set_dropout_active
    from steadyseg.core.errors import InputError as InputError
    from steadyseg.core.evaluation.conformal import ConformalScores as ConformalScores
    from steadyseg.core.evaluation.conformal import prediction_sets as prediction_sets
    from steadyseg.core.evaluation.metrics import StreamingMetrics as StreamingMetrics
    from steadyseg.core.evaluation.temperature import TemperatureScan as TemperatureScan
    from steadyseg.core.frame import Frame as Frame
    from steadyseg.core.frame import Maps as Maps
    from steadyseg.core.insertion import InsertionPoint as InsertionPoint
    from steadyseg.core.insertion import PrependedLayer as PrependedLayer
    from steadyseg.core.insertion import insert_dropout as insert_dropout
    from steadyseg.core.insertion import insert_smoothing as insert_smoothing
    from steadyseg.core.insertion import subsampling_points as subsampling_points
    from steadyseg.core.method import Method as Method
    from steadyseg.core.method import MethodOptions as MethodOptions
    from steadyseg.core.prediction import Prediction as Prediction
    from steadyseg.core.predictors import Ensemble as Ensemble
    from steadyseg.core.predictors import MonteCarlo as MonteCarlo
    from steadyseg.core.predictors import OnePass as OnePass
    from steadyseg.core.predictors import forward_passes as forward_passes
    from steadyseg.core.predictors import running_mean as running_mean
    from steadyseg.core.preprocess import Normalize as Normalize
    from steadyseg.core.segmenter import Segmenter as Segmenter
    from steadyseg.core.segmenter import segment as segment
    from steadyseg.core.smoothing import Blur as Blur
    from steadyseg.core.smoothing import Prob as Prob
    from steadyseg.core.smoothing import SpatialSmoothing as SpatialSmoothing
    from steadyseg.core.temporal import TemporalSmoothing as TemporalSmoothing
    from steadyseg.runtime.open_model import open_model as open_model
    from steadyseg.runtime.open_model import open_segmenter as open_segmenter
    from steadyseg.street.drive import Street as Street

    __version__: str

_NAMES = {
    # segment a stream
    "steadyseg.runtime.open_model": "open_model open_segmenter",
    "steadyseg.app.export.steady": "steady",
    "steadyseg.core.method": "Method MethodOptions",
    "steadyseg.core.segmenter": "Segmenter segment",
    "steadyseg.core.frame": "Frame Maps",
    "steadyseg.app.palette": "draw_overlay",
    "steadyseg.app.video.render": "draw_uncertainty",
    # sources of frames
    "steadyseg.app.sources.open_source": "open_source",
    "steadyseg.app.sources.source": "Source",
    "steadyseg.app.sources.read_ahead": "read_ahead",
    "steadyseg.street.drive": "Street",
    # the methods, for networks of one's own
    "steadyseg.core.smoothing": "Blur Prob SpatialSmoothing",
    "steadyseg.core.insertion": "InsertionPoint PrependedLayer insert_dropout insert_smoothing subsampling_points",
    "steadyseg.core.dropout": "Dropout set_dropout_active",
    "steadyseg.core.temporal": "TemporalSmoothing",
    "steadyseg.core.prediction": "Prediction",
    "steadyseg.core.predictors": "Ensemble MonteCarlo OnePass forward_passes running_mean",
    "steadyseg.core.preprocess": "Normalize",
    # classifiers, and labelled pictures
    "steadyseg.app.classifiers": "open_classifier",
    "steadyseg.classification.data.open": "open_classification",
    # evaluation and calibration
    "steadyseg.core.evaluation.metrics": "StreamingMetrics",
    "steadyseg.core.evaluation.temperature": "TemperatureScan",
    "steadyseg.core.evaluation.conformal": "ConformalScores prediction_sets",
    # export
    "steadyseg.app.export.flags": "ExportJob",
    "steadyseg.app.export.command": "run_export",
    # the Hugging Face Hub
    "steadyseg.app.hub": "HubModel",
    # what bad input raises
    "steadyseg.core.errors": "InputError",
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
