"""Trainings on a GPU: the published network in its four forms."""

from steadyseg.studies.gpu.trainings import Job

STILLS = ("--split", "test", "--protocol", "stills")
STREAM = ("--split", "val", "--protocol", "stream")
PUBLISHED = ("--motion", "off", "--tau", "1.25")
HALF_RATE = ("--motion", "off", "--tau", "0.625")
"""The published decay in frames, and the same decay in seconds: val has 15 Hz, and the published stream had 30 Hz."""
SEEDS = (0, 1)
FORMS = {"plain": (False, False), "smooth": (False, True), "mc": (True, False), "mc-smooth": (True, True)}
"""(dropout, smoothing)"""


def paper_jobs(size: int = 360, width: int = 64, rate: float = 0.5) -> list[Job]:
    """The published training in its four forms: 130 epochs of all 367 pictures, 30 passes where there is dropout.

    BatchNorm comes before ReLU, and each form has two seeds. On a CPU the size (height in pixels) and the width are
    smaller. So is the rate of dropout: at a quarter of the width, 0.5 leaves too little to learn with."""
    return [paper_job(size, width, rate, name, seed) for seed in SEEDS for name in FORMS]


def paper_job(size: int, width: int, rate: float, name: str, seed: int) -> Job:
    dropout, smoothing = FORMS[name]
    form = f"--dropout {rate if dropout else 0} --{'' if smoothing else 'no-'}smoothing"
    flags = (
        *("seg", "--preset", "replica", "--channels", str(width), "--hold-out", "none", "--seed", str(seed)),
        *("--size", str(size), *form.split(), "--config", "order=conv-bn-relu", "class_weights=median-frequency-all"),
    )
    kinds = [("dnn", "vq-dnn"), *([("bnn", "vq-bnn")] if dropout else [])]
    rows = [
        (*split, "--mode", mode)
        for one, mean in kinds
        for split, mode in ((STILLS, one), (STREAM, one), ((*STREAM, *PUBLISHED), mean), ((*STREAM, *HALF_RATE), mean))
    ]
    return Job(f"replica{size}-{name}-{seed}", flags, tuple(rows))
