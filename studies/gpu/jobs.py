"""Trainings on a GPU: the published network in its four forms, and the recipes of the networks that ship."""

from steadyseg.studies.gpu.trainings import Job

STILLS = ("--split", "test", "--protocol", "stills")
STREAM = ("--split", "val", "--protocol", "stream")
PUBLISHED = ("--motion", "off", "--tau", "1.25")
HALF_RATE = ("--motion", "off", "--tau", "0.625")
"""The published decay in frames, and the same decay in seconds: val has 15 Hz, and the published stream had 30 Hz."""
SEG = ("seg", "--data", "{data}")
SEEDS = (0, 1)
FORMS = {"plain": (False, False), "smooth": (False, True), "mc": (True, False), "mc-smooth": (True, True)}
"""(dropout, smoothing)"""


def paper_jobs(size: int = 360) -> list[Job]:
    """The published training in its four forms: 130 epochs of all 367 pictures, 30 passes where there is dropout.

    The width is a quarter of the published width, where dropout of 0.5 leaves too little to learn with. BatchNorm
    comes before ReLU, and each form has two seeds. A smaller size (height in pixels) is for a CPU."""
    return [paper_job(size, name, seed, *form) for seed in SEEDS for name, form in FORMS.items()]


def paper_job(size: int, name: str, seed: int, dropout: bool, smoothing: bool) -> Job:
    form = f"--dropout {0.2 if dropout else 0} --{'' if smoothing else 'no-'}smoothing"
    flags = (
        *(*SEG, "--preset", "replica", "--channels", "16", "--hold-out", "none", "--seed", str(seed)),
        *("--size", str(size), *form.split(), "--config", "order=conv-bn-relu", "class_weights=median-frequency-all"),
    )
    kinds = [("dnn", "vq-dnn"), *([("bnn", "vq-bnn")] if dropout else [])]
    rows = [
        (*split, "--mode", mode)
        for one, mean in kinds
        for split, mode in ((STILLS, one), (STREAM, one), ((*STREAM, *PUBLISHED), mean), ((*STREAM, *HALF_RATE), mean))
    ]
    return Job(f"replica{size}-{name}-{seed}", flags, tuple(rows))


def format_jobs() -> list[Job]:
    """Short trainings of the realtime network that differ in the number format alone: loss and accuracy should not."""
    return [
        Job(
            f"realtime-{number}",
            (*SEG, "--preset", "realtime", "--epochs", "10", "--config", "loaders=4", f"precision={number}"),
            ((*STILLS, "--mode", "dnn"),),
        )
        for number in ("fp32", "bf16", "fp16")
    ]


def recipe_jobs() -> list[Job]:
    """The trainings of the networks that ship, from ImageNet weights."""
    measured = ((*STILLS, "--mode", "dnn"), (*STREAM, "--mode", "vq-dnn"))
    return [Job(name, (*SEG, "--preset", name, "--config", "loaders=3"), measured) for name in ("realtime", "mobile")]
