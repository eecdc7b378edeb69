"""Corruption errors: error, NLL and ECE over severities, relative to AlexNet where its values are published."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal

from steadyseg.core.corruptions.corruptions import BENCHMARK_CORRUPTIONS, SEVERITIES, TUNING_CORRUPTIONS, require_known
from steadyseg.core.errors import InputError

DataName = Literal["cifar10", "cifar100", "imagenet"]


@dataclass(frozen=True)
class Scores:
    """Metrics of one type at one severity."""

    error: float
    """1 - accuracy."""
    nll: float
    """In nats."""
    ece: float
    """With 10 bins."""


ALEXNET: dict[DataName, dict[str, Scores]] = {
    "cifar10": {
        "gaussian_noise": Scores(1.5908, 6.6242, 0.8960),
        "shot_noise": Scores(1.3738, 5.5239, 0.7089),
        "impulse_noise": Scores(1.9771, 8.6797, 1.1534),
        "defocus_blur": Scores(0.8269, 2.7360, 0.2510),
        "motion_blur": Scores(1.0550, 3.3979, 0.3652),
        "zoom_blur": Scores(0.8111, 2.6133, 0.2440),
        "glass_blur": Scores(1.5216, 5.9015, 0.8650),
        "snow": Scores(1.2418, 4.5905, 0.5840),
        "frost": Scores(1.2232, 4.3962, 0.5512),
        "fog": Scores(1.1517, 3.5492, 0.3053),
        "brightness": Scores(0.8295, 3.1420, 0.2450),
        "contrast": Scores(1.4058, 4.3588, 0.2473),
        "elastic_transform": Scores(0.9801, 3.3237, 0.3904),
        "pixelate": Scores(0.9177, 3.3291, 0.3569),
        "jpeg_compression": Scores(0.9858, 3.5752, 0.4131),
    },
    "cifar100": {
        "gaussian_noise": Scores(3.5648, 33.2232, 2.3409),
        "shot_noise": Scores(3.2675, 26.4335, 2.0093),
        "impulse_noise": Scores(3.9302, 47.4422, 2.7089),
        "defocus_blur": Scores(2.6091, 14.3396, 1.2506),
        "motion_blur": Scores(2.7946, 15.1628, 1.3368),
        "zoom_blur": Scores(2.7488, 14.8510, 1.3290),
        "glass_blur": Scores(3.5300, 28.3632, 2.2411),
        "snow": Scores(2.9369, 18.6783, 1.6300),
        "frost": Scores(3.0529, 18.9350, 1.6753),
        "fog": Scores(2.8268, 13.5343, 1.0905),
        "brightness": Scores(2.4420, 14.6176, 1.2555),
        "contrast": Scores(3.0892, 14.8965, 0.9569),
        "elastic_transform": Scores(2.6121, 13.9424, 1.2553),
        "pixelate": Scores(2.3437, 12.6465, 1.1067),
        "jpeg_compression": Scores(2.4913, 13.8661, 1.2265),
    },
    "imagenet": {
        "gaussian_noise": Scores(4.4678, 31.8430, 0.6930),
        "shot_noise": Scores(4.5105, 32.7283, 0.7307),
        "impulse_noise": Scores(4.6520, 34.0930, 0.7784),
        "defocus_blur": Scores(4.2529, 24.5341, 0.1741),
        "motion_blur": Scores(4.0368, 23.2820, 0.3047),
        "zoom_blur": Scores(3.9878, 22.2911, 0.3652),
        "glass_blur": Scores(4.2045, 25.8173, 0.4122),
        "snow": Scores(4.3717, 27.9885, 0.7227),
        "frost": Scores(4.1788, 25.3312, 0.6115),
        "fog": Scores(4.1842, 23.3864, 0.5383),
        "brightness": Scores(2.9821, 14.1813, 0.1359),
        "contrast": Scores(4.3582, 27.0767, 0.4427),
        "elastic_transform": Scores(3.3765, 17.5410, 0.2434),
        "pixelate": Scores(3.5888, 20.8888, 0.6177),
        "jpeg_compression": Scores(3.2532, 16.0082, 0.3325),
    },
}
"""Sums over the five severities of the published AlexNet (its *_alexnet_dnn_corrupted.csv), for the published
pictures."""

MEASURES = ("error", "nll", "ece")
RELATIVE = ("ce", "cnll", "cece")


def corruption_means(measured: Mapping[str, Mapping[int, Scores]], published: DataName | None = None) -> dict[str, Any]:
    """Scores by type and severity -> JSON values.

    `types`: for each type `error`, `nll` and `ece`, means over its severities, and `ce`, `cnll`, `cece`: sum over the
    five severities / that of AlexNet (arXiv 2105.12639, Eq. 31-33). `mean_*`: means over those of the 15 common types
    that were measured. `mce`, `mcnll`, `mcece`: means of the ratios over all 15. Ratios are fractions (published:
    percent); None unless `published` names the set whose published files were measured (AlexNet saw no others), or
    where a severity or a type lacks. Raises InputError for unknown types, severities and sets, and if nothing was
    measured.
    """
    _check(measured, published)
    denominators = ALEXNET[published] if published else {}
    types = {name: _of_type(by_severity, denominators.get(name)) for name, by_severity in measured.items()}
    common = [types[name] for name in BENCHMARK_CORRUPTIONS if name in types]
    return {
        "types": types,
        **{f"mean_{key}": _mean([row[key] for row in common]) for key in MEASURES},
        **{
            f"m{key}": _mean([row[key] for row in common]) if len(common) == len(BENCHMARK_CORRUPTIONS) else None
            for key in RELATIVE
        },
    }


def _of_type(by_severity: Mapping[int, Scores], alexnet: Scores | None) -> dict[str, float | None]:
    sums = [sum(column) for column in zip(*map(astuple, by_severity.values()), strict=True)]
    means = {key: total / len(by_severity) for key, total in zip(MEASURES, sums, strict=True)}
    ratios: list[float | None] = [None] * len(RELATIVE)
    if alexnet and len(by_severity) == len(SEVERITIES):
        ratios = [total / reference for total, reference in zip(sums, astuple(alexnet), strict=True)]
    return {**means, **dict(zip(RELATIVE, ratios, strict=True))}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _check(measured: Mapping[str, Mapping[int, Scores]], published: str | None) -> None:
    if not measured or not all(measured.values()):
        raise InputError("corruption means need one or more types, each with one or more severities")
    for name, by_severity in measured.items():
        require_known(name, (*BENCHMARK_CORRUPTIONS, *TUNING_CORRUPTIONS), "corruption")
        if not set(by_severity) <= set(SEVERITIES):
            raise InputError(f"{name}: severities must be 1, 2, 3, 4 or 5, got {', '.join(map(str, by_severity))}")
    if published is not None:
        require_known(published, tuple(ALEXNET), "set with AlexNet's values")
