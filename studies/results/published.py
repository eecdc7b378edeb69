"""Published results for CamVid, beside which our rows stand; the two papers' baselines differ and are not mixed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedRow:
    """A row of Table 2 / E.4 of arXiv 2105.12639: fractions in 0..1, NLL in nats."""

    dropout: bool
    smoothing: bool
    temporal: bool
    passes: int
    nll: float
    accuracy: float
    ece: float
    consistency: float


SPATIAL_TABLE = [
    PublishedRow(False, False, False, 1, 0.354, 0.923, 0.0495, 0.951),
    PublishedRow(False, True, False, 1, 0.318, 0.924, 0.0454, 0.955),
    PublishedRow(False, False, True, 1, 0.290, 0.925, 0.0318, 0.963),
    PublishedRow(False, True, True, 1, 0.278, 0.925, 0.0303, 0.966),
    PublishedRow(True, False, False, 50, 0.298, 0.925, 0.0420, 0.954),
    PublishedRow(True, True, False, 50, 0.284, 0.926, 0.0396, 0.956),
    PublishedRow(True, False, True, 1, 0.273, 0.926, 0.0323, 0.964),
    PublishedRow(True, True, True, 1, 0.260, 0.926, 0.0271, 0.965),
]

VQBNN_KEYS = ("nll", "accuracy", "acc_90", "unc_90", "miou", "iou_90", "freq_90", "ece")
VQBNN_TABLE: dict[str, tuple[float | None, ...]] = {
    "DNN": (0.314, 0.911, 0.961, 0.613, 0.661, 0.777, 0.864, 0.0431),
    "BNN (30)": (0.276, 0.918, 0.965, 0.630, 0.681, 0.799, 0.868, 0.0371),
    "VQ-DNN": (0.284, 0.912, None, None, None, None, None, 0.0300),
    "VQ-BNN": (0.253, 0.920, 0.974, 0.724, 0.686, 0.837, 0.831, 0.0224),
}
"""Table 1 of arXiv 1907.05911."""

PUBLISHED_THROUGHPUT = {"bare_plain": "100", "vq_dnn": "98.2", "vq_bnn": "92.7", "mc_30": "2.99"}
"""Table 1 of arXiv 1907.05911, percent; VQ-DNN's is from the author's post."""

CAMVID_ROWS = [
    ("ENet", "51.3", "0.36 M", ""),
    ("ESPNet", "55.6", "0.36 M", ""),
    ("FC-DenseNet67", "65.8", "3.5 M", "a reproduction of its larger FC-DenseNet103 reached 57.9"),
    ("ELNet", "66", "< 0.97 M", ""),
    ("U-Net of arXiv 1907.05911 (DNN)", "66.1", "", "the baseline of VQ-BNN"),
    ("DABNet", "66.7", "0.76 M", "trained on train and val, 1,000 epochs"),
    ("LETNet", "70.5", "0.95 M", "trained on train and val by its repository's default"),
    ("DDRNet-23-slim", "74.4", "", "begins with weights of other photographs"),
    ("PIDNet-S", "80.1", "", "begins with weights of other photographs"),
    ("RegSeg", "80.9", "", "begins with weights of other photographs"),
]
"""Networks trained on CamVid, 11 classes: mIoU in percent on test. Most begin with random weights, at 480x360."""
