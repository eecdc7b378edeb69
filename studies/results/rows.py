"""The rows that a network gets, by protocol; temperatures and memories are fitted on the other split than the one
reported."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steadyseg.core.classes import CAMVID
from steadyseg.core.evaluation.temperature import TemperatureFit
from steadyseg.core.frame import Frame
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.calibrate import ConformalCheck, ConformalFit
from steadyseg.seg.data.camvid import open_split
from steadyseg.seg.data.moving_stills import CLIP_FRAMES, moving_stills
from steadyseg.seg.evaluate import mark_stills
from steadyseg.seg.pretrained import FOLDER
from steadyseg.studies.harness.window import WindowSmoothing
from steadyseg.studies.results.methods import ALL, MEMBER, MOTION_INPUTS, ONE, WINDOW, Method, Sampling
from steadyseg.studies.results.sweep import RISK_CLASS, Subject, sweep

TAUS = (0.5, 0.8, 1.25, 2.0, 3.0)
FEW, MANY = Sampling("dropout", 5), Sampling("dropout", 30)
FIT_EVERY = 5
"""Stride of the moving stills that are fitted on: a grid of temperatures costs three times what the network does."""
SETS = ("dnn", "vq-dnn", "vq-dnn motion")
COVERAGE, RISK = 0.9, 0.05
"""Share of the pixels whose set shall hold the true class; largest share of a class's pixels that may be missed."""
CHOSEN_ON = FOLDER / "camvid-test-49.txt"
"""Beside the val stream, the moving stills that the default rule was chosen on: every third still of test."""
RULE_KEYS = tuple(
    "nll accuracy miou ece consistency label_consistency change_agreement change_agreement_frozen".split()
)
DRAW = Sampling("dropout")
"""Masks drawn once a frame."""


@dataclass
class Fits:
    """Values that are fitted on one split and used on the other."""

    temperatures: dict[str, TemperatureFit] = field(default_factory=dict)
    memories: dict[str, TemporalSmoothing] = field(default_factory=dict)
    """By mode: the memory of least NLL."""
    sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By mode: thresholds of prediction sets and of the class whose misses are bounded, at temperature 1."""


def frames_of(protocol: str, data: Path, every: int = 1) -> Iterator[Frame]:
    """Returns the frames of a protocol: stills and every n-th moving still of test, or val as a stream."""
    split = open_split(data, "val" if protocol in ("stream", "changes") else "test")
    if protocol == "unseen":
        return moving_stills(split.subset(unseen_stills(data)))
    if protocol == "moving-stills":
        return moving_stills(split.subset([example.name for example in split.examples[::every]]))
    return mark_stills(split.frames()) if protocol == "stills" else split.frames()


def unseen_stills(data: Path) -> list[str]:
    """The test stills that the choice of the default rule did not see: two thirds."""
    seen = set(CHOSEN_ON.read_text().split())
    return [example.name for example in open_split(data, "test").examples if example.name not in seen]


def measure_rule(subject: Subject, protocol: str, data: Path, has_dropout: bool) -> dict[str, dict[str, Any]]:
    """`changes`: how predictions change along the stream. `unseen`: the default rule on stills that its choice did not
    see."""
    dropout = has_dropout and protocol == "changes"
    names = {"dnn", "vq-dnn", "vq-dnn motion", "vq-bnn", "vq-bnn motion"}
    methods = {name: one for name, one in plain_methods("stream", dropout, False).items() if name in names}
    found = sweep(subject, frames_of(protocol, data), methods, {}).rows
    return {name: describe_method(methods[name]) | {key: found[name][key] for key in RULE_KEYS} for name in methods}


def plain_methods(protocol: str, has_dropout: bool, is_ensemble: bool) -> dict[str, Method]:
    """The published methods at temperature 1, by name."""
    if is_ensemble:
        methods = {"ensemble": Method(ALL), "vq-ensemble": Method(MEMBER, WINDOW)}
    else:
        methods = {"dnn": Method(ONE), "vq-dnn": Method(ONE, WINDOW), "vq-dnn motion": Method(ONE, MOTION_INPUTS)}
    if has_dropout:
        methods |= {
            "bnn-1": Method(DRAW),
            "vq-bnn": Method(DRAW, WINDOW),
            "vq-bnn motion": Method(DRAW, MOTION_INPUTS),
        }
        if protocol != "moving-stills":  # seven frames a still: 30 passes of each would take an hour
            methods |= {"bnn-5": Method(FEW), "bnn-30": Method(MANY)}
    return {name: method for name, method in methods.items() if protocol != "stills" or method.smoothing is None}


def measure(subject: Subject, protocol: str, data: Path, fits: Fits, has_dropout: bool) -> dict[str, dict[str, Any]]:
    """All rows of a protocol: as published, calibrated, and with the memory that was fitted elsewhere."""
    methods = plain_methods(protocol, has_dropout, len(subject.networks) > 1)
    if subject.class_weights is not None:
        methods |= {
            f"{name} undone": replace(method, undone=True) for name, method in methods.items() if name != "bnn-5"
        }
    for name, method in list(methods.items()):
        mode = fit_name(name)
        if not method.undone and mode in fits.temperatures and name not in ("bnn-1", "bnn-5"):
            methods[f"{name} calibrated"] = at(method, fits.temperatures[mode].temperature)
        if not method.undone and mode in fits.memories and method.smoothing == WINDOW:
            smoothing = fits.memories[mode]
            temperature = fits.temperatures[memory_name(mode, smoothing)].temperature
            methods[f"{name} fitted memory calibrated"] = Method(method.sampling, smoothing, temperature)
    checks = {name: ConformalCheck(fits.sets[name], subject.classes) for name in methods if name in fits.sets}
    found = sweep(
        subject, frames_of(protocol, data), methods, {}, checks=checks, sequence=sequences(protocol, data)
    ).rows
    return {name: describe_method(methods[name]) | found[name] for name in methods}


def sequences(protocol: str, data: Path) -> Callable[[int], str]:
    """The recording that the place-th frame is from: CamVid's 0001TP_008550 is of 0001TP."""
    names = [example.name for example in open_split(data, "val" if protocol == "stream" else "test").examples]
    frames = CLIP_FRAMES if protocol == "moving-stills" else 1
    return lambda place: names[place // frames].split("_")[0]


def fit(subject: Subject, protocol: str, data: Path, has_dropout: bool) -> Fits:
    """Temperatures of all modes, and for those with a memory its best decay, by NLL at their own best temperature."""
    scanned = {"dnn": Method(ONE)} if len(subject.networks) == 1 else {"ensemble": Method(ALL)}
    if has_dropout and protocol != "moving-stills":
        scanned["bnn"] = Method(FEW)
    samplings = {"vq-dnn": ONE} if len(subject.networks) == 1 else {"vq-ensemble": MEMBER}
    samplings |= {"vq-bnn": DRAW} if has_dropout else {}
    if protocol == "stills":
        samplings = {}
    for mode, sampling in samplings.items():
        scanned[mode] = Method(sampling, WINDOW)
        if sampling is not MEMBER:
            scanned[f"{mode} motion"] = Method(sampling, MOTION_INPUTS)
        for tau in TAUS:
            smoothing = TemporalSmoothing(tau)
            scanned[memory_name(mode, smoothing)] = Method(sampling, smoothing)
    swept = sweep(subject, frames_of(protocol, data, FIT_EVERY), {}, scanned)
    temperatures = swept.temperatures
    memories = {}
    for mode in samplings:
        fits = {one: temperatures.get(memory_name(mode, one)) for one in map(TemporalSmoothing, TAUS)}
        nll = {one: found.nll_calibrated for one, found in fits.items() if found}
        if nll:
            memories[mode] = min(nll, key=nll.__getitem__)
    return Fits(temperatures, memories, {name: thresholds(swept.sets[name]) for name in SETS if name in swept.sets})


def thresholds(fitted: ConformalFit) -> dict[str, Any]:
    """Thresholds in the form in which `steadyseg calibrate` stores them."""
    assert fitted.risk is not None
    return {
        "conformal": {"coverage": COVERAGE, **fitted.scores.thresholds(COVERAGE)},
        "class_risk": fitted.risk.control(RISK, CAMVID.names[RISK_CLASS]),
    }


def fit_name(name: str) -> str:
    """bnn-30 -> bnn: one temperature for any number of passes, fitted with five."""
    return "bnn" if name.startswith("bnn-") else name


def memory_name(mode: str, smoothing: TemporalSmoothing) -> str:
    return f"{mode} tau {smoothing.tau}"


def at(method: Method, temperature: float) -> Method:
    return Method(method.sampling, method.smoothing, temperature)


def describe_method(method: Method) -> dict[str, Any]:
    """The flags of `steadyseg evaluate` that make the row again."""
    smoothing = method.smoothing
    return {
        "mode": method.mode,
        "samples": method.sampling.samples,
        "tau": smoothing.tau if smoothing else None,
        "window": smoothing.window if isinstance(smoothing, WindowSmoothing) else None,
        "motion": smoothing.motion if smoothing else False,
        "temperature": method.temperature,
        "undone": method.undone,
    }
