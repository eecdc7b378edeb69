"""What trains and measures the rows of docs/explanation/papers.md, by the names in their last column."""

from dataclasses import dataclass

from steadyseg.studies.papers.trainings import ENDS, FORMS, HEADS, SMOOTHED

STILLS, STREAM = "--split test --protocol stills", "--split val --protocol stream"
PUBLISHED, HALF_RATE = f"{STREAM} --motion off --tau 1.25", f"{STREAM} --motion off --tau 0.625"
"""The published decay in frames, and the same decay in seconds: val has 15 Hz, and the published stream had 30 Hz."""
REPORT = "--device {device} --report {out}.json --overwrite"


@dataclass(frozen=True)
class Row:
    networks: tuple[str, ...] = ()
    """Names in TRAININGS."""
    commands: tuple[str, ...] = ()
    """What measures them; {NAME} stands for the checkpoint of a network."""
    open: str = ""
    """What of it was not run."""
    prediction: str = ""
    """What the run is expected to show, written before any run."""
    commit: str = ""
    """Where its code went: the last commit that has it."""


def named(prefix: str, *seeds: int, kinds: tuple[str, ...] = tuple(FORMS)) -> tuple[str, ...]:
    return tuple(f"{prefix}-{kind}-{seed}" for seed in seeds for kind in kinds)


def seeds(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}-{seed}" for name in names for seed in (0, 1))


def evaluate(name: str, flags: str, data: str) -> str:
    return f"steadyseg evaluate {{{name}}} --data {{{data}}} {flags} {REPORT}"


def streams(*names: str, open: str = "", prediction: str = "") -> Row:
    """U-Nets: single frames and the mean at both decay times, of one pass, and where there is dropout of 30."""
    found = []
    for name in names:
        for one, mean in [("dnn", "vq-dnn"), *([("bnn", "vq-bnn")] if "-mc" in name else [])]:
            of_mode = ((STILLS, one), (STREAM, one), (PUBLISHED, mean), (HALF_RATE, mean))
            found += [evaluate(name, f"{flags} --mode {mode}", "camvid") for flags, mode in of_mode]
    for name in (name for name in names if prediction and "plain" in name):  # beside all methods one fitted temperature
        fitted = f"{{runs}}/{name}-fitted.safetensors"
        fit = f"--data {{camvid}} {STILLS} --mode dnn --device {{device}} --overwrite"
        found += [f"steadyseg calibrate {{{name}}} {fit} -o {fitted}"]
        found += [f"steadyseg evaluate {fitted} --data {{camvid}} {STREAM} --mode dnn {REPORT}"]
    return Row(names, tuple(found), open, prediction)


def decays(*included: str) -> tuple[str, ...]:
    """Included networks at temperature 1: single frames of one pass, and the mean at both decay times."""
    flags = [f"{STREAM} --mode dnn", f"{PUBLISHED} --mode vq-dnn", f"{HALF_RATE} --mode vq-dnn"]
    flags += [f"{STREAM} --mode bnn --samples 1", f"{PUBLISHED} --mode vq-bnn", f"{HALF_RATE} --mode vq-bnn"]
    run = "steadyseg evaluate {} --data {{camvid}} --calibrated off {} {}"
    return tuple(run.format(name, one, REPORT) for name in included for one in flags)


def pictures(*names: str, data: str = "cifar10", open: str = "", prediction: str = "") -> Row:
    """Classifiers: dropout off, and where there is dropout after 1 to 50 passes."""
    return Row(names, tuple(evaluate(name, "--split test", data) for name in names), open, prediction)


def look(study: str, names: tuple[str, ...], flags: str, data: str = "cifar10") -> str:
    """A study of networks side by side."""
    models = " ".join(f"{{{name}}}" for name in names)
    where = f"--data {{{data}}} {flags} --config device={{device}} --output {{out}} --overwrite"
    return f"python -m steadyseg.studies.analysis {study} {models} {where}"


def inside(*studies: tuple[str, str, str]) -> Row:
    """Studies (name, flags of the classifiers, flags of the U-Nets) of both pairs."""
    commands = [look(name, pair, flags[at], data) for name, *flags in studies for at, (pair, data) in enumerate(PAIRS)]
    return Row(tuple(name for pair, _ in PAIRS for name in pair), tuple(commands))


def transformers(study: str, flags: str, data: str = "cifar10", *more: str) -> Row:
    return Row((*ALL, *more), (look(study, (*ALL, *more), flags, data),))


NOT_RUN = "not run"
MEMBERS = ("paper-plain-0", "paper-plain-1", "paper-plain-2")
PAIRS = ((("resnet18-plain-0", "resnet18-mc-smooth-0"), "cifar10"), (("paper-plain-0", "paper-smooth-0"), "camvid"))
"""Classifiers and U-Nets that the studies of networks compare."""
ALL, JPEG, TRAINED = seeds("preresnet18", "vit6", "alternet18"), "cifar10-jpeg", "--split trained --images"
TIMED = ("paper-plain-0", "paper-smooth-0", "paper-mc-smooth-0")

ROWS: dict[str, Row] = {
    "table-2": streams(*named("paper", 0), *MEMBERS[1:], *named("cpu", 0)),
    "decay": Row(commands=decays("camvid-unet-s", "road-realtime", "road-mobile")),
    "overconfidence": Row((), ("python -m steadyseg.studies.results.overconfidence --data {camvid}",)),
    "speed": Row(TIMED, tuple(f"steadyseg bench {{{name}}} {REPORT}" for name in TIMED)),
    "ensemble": Row(
        MEMBERS,
        tuple(
            evaluate(MEMBERS[0], f"--members {{{MEMBERS[1]}}} {{{MEMBERS[2]}}} {flags}", "camvid")
            for flags in (f"{STREAM} --mode dnn", f"{PUBLISHED} --mode vq-dnn")
        ),
    ),
    **dict.fromkeys(("lag", "depth", "sensors"), Row(commit="8701b10")),
    "classifiers": pictures(*named("resnet18", 0, 1)),
    "vgg": pictures(*named("vgg16", 0, kinds=ENDS)),
    "prob": pictures(*seeds("none", *SMOOTHED)),
    "blur": pictures(*seeds("blur1-tanh", "blur2-tanh", "blur3-tanh", "blur5-tanh")),
    "heads": pictures(*seeds("none", *(f"head-{name}" for name in HEADS))),
    "pre-activation": pictures(*seeds("none", "preact")),
    "maps": inside(("fourier", "--images 256", "--images 8"), ("variance", "--images 128", "--images 8")),
    "curvature": inside(("hessian", "--images 96 --config top=3 steps=24", "--images 3 --config top=2 steps=12")),
    "plane": inside(("landscape", "--images 128 --config points=11", "--images 1 --config points=9")),
    "corruptions": inside(("robustness", "--only corruptions", "--only corruptions")),
    "perturbations": inside(("robustness", "--only perturbations", "--only perturbations")),
    "attacks": inside(("robustness", "--only attacks", "--only attacks")),
    "noise": inside(("robustness", "--only bands", "--only bands")),
    "vit-hessian": transformers("hessian", f"{TRAINED} 64 --config top=5 steps=0 max_seconds=7200", JPEG, "vit6-gap-0"),
    "vit-plane": transformers("landscape", f"{TRAINED} 128 --config points=11 max_seconds=7200", JPEG),
    "vit-fourier": transformers("fourier", "--images 256"),
    "vit-variance": transformers("variance", "--images 256"),
    "vit-robustness": transformers(
        "robustness", "--only corruptions bands --images 500 --config severities=3 costly_images=200"
    ),
    "vit-accuracy": pictures(*ALL, "vit6-gap-0", "vit6-local3-0", "vit6-local5-0", data=JPEG),
    "vit-few": pictures("vit6-2500-0", "preresnet18-2500-0", data=JPEG),
    "build-up": pictures(*seeds(*(f"build-up-{at}" for at in ("0000", "0001", "0010", "0100", "1000"))), data=JPEG),
    "130-epochs": streams(
        *named("replica180", 0, 1),
        open="two of the eight trainings ran",
        prediction="both smoothings within MC dropout lower the NLL, by less than after 40 epochs",
    ),
    "few": streams(
        *named("few180", 0, 1, kinds=ENDS),
        open=NOT_RUN,
        prediction="the plain network's ECE is above 5 %, and all three methods lower the NLL by 10 % or more",
    ),
    "unseen-drive": streams(*named("unseen180", 0, 1, kinds=ENDS), prediction="the sign of `few`, and a smaller size"),
    "width-64": streams(*named("replica360", 0, 1), open=NOT_RUN, prediction="the published signs of Table 2"),
    "hard-labels": pictures(
        *named("hard", 0), open=NOT_RUN, prediction="50 passes have a lower NLL than one, which label smoothing hides"
    ),
    "vit-early": Row(
        open=NOT_RUN,
        prediction="early in training the ViT has more negative eigenvalues than the ResNet",
        commit="443e96e4",
    ),
}
