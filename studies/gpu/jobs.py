"""Trainings on a GPU: the published network in its four forms, and the recipes of the layouts that ship."""

from steadyseg.studies.harness.trainings import Job

STILLS = ("--split", "test", "--protocol", "stills")
STREAM = ("--split", "val", "--protocol", "stream")
SEG = ("seg", "--data", "{data}")
SEEDS = (0, 1)
"""Seeds of unet-s, which teach the small networks."""
FORMS = {"plain": (False, False), "smooth": (False, True), "mc": (True, False), "mc-smooth": (True, True)}
"""(dropout, smoothing)"""


def paper_jobs() -> list[Job]:
    """`unet-replica`, width 64, 130 epochs: NLL, accuracy and the rest of stills and stream, 50 passes where there is
    dropout."""
    return [paper_job(name, *form) for name, form in FORMS.items()]


def paper_job(name: str, dropout: bool, smoothing: bool) -> Job:
    flags = (
        *SEG,
        "--preset",
        "replica",
        "--dropout",
        "0.5" if dropout else "0",
        "--smoothing" if smoothing else "--no-smoothing",
        "--config",
        "loaders=4",
    )
    single = [(*STILLS, "--mode", "dnn"), (*STREAM, "--mode", "dnn"), (*STREAM, "--mode", "vq-dnn")]
    drawn = [
        (*STILLS, "--mode", "bnn", "--samples", "50"),
        (*STREAM, "--mode", "bnn", "--samples", "30"),
        (*STREAM, "--mode", "vq-bnn"),
    ]
    return Job(f"unet-replica-{name}", flags, (*single, *(drawn if dropout else [])))


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
    """The trainings of the layouts that ship: two seeds of unet-s, and the small networks that they teach, each begun
    on the street."""
    unets = [job for seed in SEEDS for job in street_and_camvid("unet-s", seed)]
    teachers = ("--config", "teacher=" + ",".join(f"{{unet-s-{seed}}}" for seed in SEEDS))
    return unets + [job for name in ("realtime", "mobile") for job in street_and_camvid(name, 0, teachers)]


def street_and_camvid(preset: str, seed: int, flags: tuple[str, ...] = ()) -> list[Job]:
    """The training on the street, and the one on CamVid that begins with its model."""
    measured = ((*STILLS, "--mode", "dnn"), (*STREAM, "--mode", "vq-dnn"))
    both = ("--seed", str(seed), "--config", "loaders=6")
    street = Job(f"{preset}-street-{seed}", ("seg", "--data", "street", "--preset", f"{preset}-street", *both))
    after = (*SEG, "--preset", preset, *both, "--init", f"{{{street.name}}}", *flags)
    return [street, Job(f"{preset}-{seed}", after, measured)]
