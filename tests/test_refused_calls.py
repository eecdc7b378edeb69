"""What functions refuse: a table by folder of calls and what their one line says. Commands: tests/app."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from refusals import refusal
from torch import Tensor, nn

from steadyseg.classification.networks.build import build_classifier
from steadyseg.classification.networks.heads import GlobalMedian
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.corruptions.corruptions import corrupt
from steadyseg.core.dropout import Dropout
from steadyseg.core.evaluation.conformal import ClassRisk, ConformalScores
from steadyseg.core.evaluation.metrics import StreamingMetrics
from steadyseg.core.familiarity.gaussians import GaussianSums
from steadyseg.core.options import require_ranges
from steadyseg.core.picture_size import network_size
from steadyseg.core.predictors import MonteCarlo
from steadyseg.core.smoothing import Blur, Prob, SpatialSmoothing
from steadyseg.core.stages import StageFeatures
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.core.training.config import TRAIN_RANGES, TrainConfig
from steadyseg.seg.calibrate import adjust_head
from steadyseg.seg.networks.build import build_network
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.pretrained import find_checkpoint, list_segmenters
from steadyseg.street.drive import Street, StreetSet
from steadyseg.studies.analysis.measures.fourier import log_amplitude
from steadyseg.studies.analysis.measures.variance import DrawVariance
from steadyseg.studies.harness.ood_detection import auroc
from steadyseg.studies.robustness.measures.frequency import Band, limit_to_band
from steadyseg.studies.robustness.measures.perturbations import perturb

PICTURE = np.zeros((40, 52, 3), np.uint8)


def gaussians_of(value: float) -> None:
    GaussianSums(1, 1).update(torch.tensor([[value]]), torch.tensor([0]))


def metrics_of_void(samples: int) -> None:
    metrics = StreamingMetrics(3, void=9)
    for _ in range(samples):
        metrics.update(torch.full((1, 3), 1 / 3), torch.tensor([9]))
    metrics.result()


def undo(weights: object, **record: object) -> dict[str, Tensor]:
    return adjust_head({"head.bias": torch.zeros(2)}, {"class_weights": weights, **record})


ONES, UNET = torch.ones(2), UNetOptions(channels=4, depth=2, dropout=0, dropout_places=())
CORE: list[tuple[Callable[[], object], str | tuple[str, ...]]] = [
    *((lambda rate=rate: Dropout(rate), "dropout rate must lie in") for rate in (-0.1, 0.999, math.nan)),
    (lambda: Dropout(0.001), "round to none"),
    *((lambda value=value: gaussians_of(value), "NaN or infinite") for value in (math.nan, math.inf)),
    (lambda: GaussianSums(2, 2).fit(), "no class means"),
    (
        lambda: StreamingMetrics(3).update(torch.full((50, 3), 1 / 3), torch.arange(50)),
        "got 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ...:",
    ),
    *((lambda samples=samples: metrics_of_void(samples), "non-void") for samples in (0, 1)),
    (lambda: StreamingMetrics(1), "two or more classes"),
    *((lambda cutoff=cutoff: StreamingMetrics(3, cutoff=cutoff), "lie in [0, 1)") for cutoff in (1.0, -0.1)),
    (lambda: MonteCarlo(nn.Sequential(Dropout(0.5)), 0), "1 or more"),
    *((lambda height=height: network_size(360, 480, height), "32 pixels or more") for height in (-360, 31)),
    (lambda: network_size(1, 8192, 360), "16 times as wide"),
    (lambda: network_size(10, 161, 360), "16 times as wide"),
    (lambda: Prob("softplus"), "tanh, relu6, constant, sigmoid, softmax, bn-tanh, signed-tanh, none"),
    (lambda: Blur(4), "1, 2, 3, 5"),
    (lambda: Blur(2, "valid"), "published, same"),
    *((lambda scale=scale: SpatialSmoothing("tanh", 2, scale=scale), "positive") for scale in (-1.0, 0.0)),
    (lambda: StageFeatures(UNet(3, UNET), ["dec9"]), "unknown stage 'dec9'; this network has enc1, enc2, dec3"),
    *((lambda tau=tau: TemporalSmoothing(tau), "tau must be a positive") for tau in (0.0, math.nan, math.inf)),
    (lambda: require_ranges(TrainConfig(step_epochs=(10, -1)), TRAIN_RANGES), "step_epochs"),
    *((lambda share=share: ConformalScores(255).threshold(share), "between 0 and 1") for share in (0.0, 1.0, math.nan)),
    *((lambda level=level: ClassRisk(1, 255).control(level, "Car"), "between 0 and 1") for level in (0.0, 1.0)),
    (lambda: corrupt(PICTURE[:31], "fog", 1), "32x32 pixels or more, got 52x31"),
    (lambda: corrupt(PICTURE[..., 0], "fog", 1), "(height, width, 3), RGB, got uint8 (40, 52)"),
    (lambda: corrupt(PICTURE.astype(np.float32), "fog", 1), "got float32"),
    (lambda: corrupt(PICTURE.tolist(), "fog", 1), "got list"),
    (lambda: corrupt(PICTURE, "fog", 0), "1, 2, 3, 4 or 5, got 0"),
    (lambda: corrupt(PICTURE, "fog", 2.5), "got 2.5"),
    (lambda: corrupt(PICTURE, "gausian_noise", 1), "did you mean gaussian_noise"),
    (lambda: corrupt(PICTURE, "Motion-Blur", 1), "did you mean motion_blur"),
    (lambda: corrupt(PICTURE, "sepia", 1), ("There are gaussian_noise, ", "saturate")),
]
OPTIONS = {
    "street": ({"height": 31}, {"width": 4097}, {"fps": 0.0}, {"fps": math.nan}, {"seed": -1}, {"noise": -0.1}),
    "segnet": ({"segnet_channels": 0}, {"segnet_dropout": 1.0}, {"segnet_dropout_places": ["dec11"]}, {"channels": 4}),
    "smp": (
        *({"architecture": "SegNet"}, {"encoder": "tu-nosuchnet"}, {"encoder_weights": "cityscapes"}, {"blocks": 5}),
        *({"decoder_dropout": 1.0}, {"architecture": "UnetPlusPlus", "encoder": "mit_b0"}, {"architecture": 5}),
        *({"architecture": "FPN", "head_stride": 2}, {"decoder_channels": (128, 64, 32, 24, 16, 8), "head_stride": 2}),
        *({"decoder_channels": ()}, {"encoder_dropout": 1.0}, {"encoder_prob": "swish"}),
    ),
    "unet": (
        *({"channels": 0}, {"channels": 2.5}, {"depth": 1}, {"depth": 8}, {"dropout": 1.0}, {"dropout": math.nan}),
        *({"dropout_places": ("enc6",)}, {"dropout_places": "enc3"}, {"depth": 3}),  # no dec8, a place of dropout
        *({"prob": "relu"}, {"blur": 4}, {"padding": "valid"}, {"skip": "both"}, {"colour": "blue"}),
    ),
}
"""Options that make no sense. They may come from a file's record, so wrong types are bad input too."""
SEG = [
    *((lambda given=given: Street(**given), "street's") for given in OPTIONS["street"]),
    (lambda: Street(height=96, width=128).frame(-1), "frame index"),
    (lambda: StreetSet(0), "one picture or more"),
    *(
        (
            lambda name=name, given=given: build_network(name, {"channels": 2} | given if name == "unet" else given, 4),
            "",
        )
        for name in ("segnet", "smp", "unet")
        for given in OPTIONS[name]
    ),
    (lambda: UNet(1), "two or more classes"),
    (lambda: build_network("resunet", {}, 11), "unet, segnet, smp"),
    *((lambda one=one: find_checkpoint(one), (*list_segmenters(),)) for one in ("camvid unet", "", "x" * 300)),
    (lambda: undo(None), "records no class weights"),
    (lambda: undo([1.0, 1.0]), "records no class weights"),
    (lambda: undo([0.5, 2.0], class_weights_undone=True), "adjusted for already"),
    (lambda: undo([0.0, 2.0]), "never trained"),
    *(
        (lambda count=count: build_classifier(ClassifierOptions(), count), "two or more classes")
        for count in (0, 1, -3)
    ),
    (lambda: GlobalMedian()(torch.randn(1, 4, 1, 1)), "two or more points, got 1 x 1"),
]
STUDIES = [
    (lambda: auroc(ONES[:0], ONES), "(0,) inside"),
    (lambda: auroc(ONES, torch.ones(2, 2)), "(2, 2) outside"),
    (lambda: auroc(ONES * math.nan, ONES), "NaN among the scores inside"),
    (
        lambda: limit_to_band(torch.randn(3, 4, 4), Band(0.7, 0.05)),
        ("no frequency within 0.05 of 0.7 pi: widen", "0.25"),
    ),
    (lambda: perturb(PICTURE, "rotation"), "did you mean rotate"),
    (lambda: perturb(PICTURE[..., 0], "rotate"), "RGB, got"),
    (lambda: perturb(PICTURE.astype(float), "rotate"), "float64"),
    (lambda: perturb(PICTURE[:0], "rotate"), "1x1 pixels or more"),
    (lambda: log_amplitude(torch.ones(1, 1, 7, 1)), "a map of 1x7 has one frequency"),
    (lambda: DrawVariance().add(torch.ones(2, 3, 1, 1)), "one point"),
]


@pytest.mark.parametrize(("call", "says"), [*CORE, *SEG, *STUDIES])
def test_a_refusal_is_one_line_with_its_reason(call: Callable[[], object], says: str | tuple[str, ...]) -> None:
    line = refusal(call)
    assert all(words in line for words in ((says,) if isinstance(says, str) else says)), line
