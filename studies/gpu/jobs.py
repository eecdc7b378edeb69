"""What is trained on a GPU: the published network in its four forms, and the recipes of the networks that ship."""

from studies.gpu.trainings import Job

STILLS = ("--split", "test", "--protocol", "stills")
STREAM = ("--split", "val", "--protocol", "stream")
FORMS = {"plain": (False, False), "smooth": (False, True), "mc": (True, False), "mc-smooth": (True, True)}
"""(dropout, smoothing)"""


def paper_jobs() -> list[Job]:
    """`unet-paper`, width 64, 130 epochs: NLL, accuracy and the rest of stills and stream, 50 passes where there is
    dropout."""
    return [paper_job(name, *form) for name, form in FORMS.items()]


def paper_job(name: str, dropout: bool, smoothing: bool) -> Job:
    flags = (
        "--preset",
        "paper",
        "--dropout",
        "0.5" if dropout else "0",
        "--smoothing" if smoothing else "--no-smoothing",
        "--loaders",
        "4",
    )
    single = [(*STILLS, "--mode", "dnn"), (*STREAM, "--mode", "dnn"), (*STREAM, "--mode", "vq-dnn")]
    drawn = [
        (*STILLS, "--mode", "bnn", "--samples", "50"),
        (*STREAM, "--mode", "bnn", "--samples", "30"),
        (*STREAM, "--mode", "vq-bnn"),
    ]
    return Job(f"unet-paper-{name}", flags, (*single, *(drawn if dropout else [])), kept=False)


def recipe_jobs() -> list[Job]:
    """The presets of the networks that ship, at full length."""
    measured = ((*STILLS, "--mode", "dnn"), (*STREAM, "--mode", "vq-dnn"))
    presets = ("cpu", "realtime", "mobile")
    return [Job(f"recipe-{preset}", ("--preset", preset, "--loaders", "6"), measured) for preset in presets]
