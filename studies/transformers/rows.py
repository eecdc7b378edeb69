"""The trainings that the study of transformers compares, in the order in which they run."""

from dataclasses import dataclass
from pathlib import Path

from steadyseg.core.training.run_folder import MODEL_NAME

EPOCHS = 60
WHOLE_EPOCHS = 17
"""Epochs on all of CIFAR-10: two hours of one core with MC dropout and smoothing (7.1 minutes an epoch in fp32 on
AVX-512, 5.5 without both)."""
AGAIN_EPOCHS = 20
"""Epochs of a second cycle, which begins with the weights of the first."""
SUBSET = 10_000
COMMON = ("--config", "evaluate_every=5", "threads=1")
SGD_WHOLE = ("--preset", "small", "--batch-size", "128", "--hold-out", "0.04")
"""One cycle to 0.1, crops and flips, on all of CIFAR-10: 2,000 held out, 48,000 trained on."""
RUNS = "{runs}"
"""Stands for the folder of the run folders."""
RATE = "{rate}"
"""Stands for the learning rate that the pilots choose (rates.py)."""
ADAMW = (
    "--preset",
    "adamw",
    "--hold-out",
    "0.1",
    "--learning-rate",
    RATE,
    "--config",
    f"warmup={round(5 / EPOCHS, 6)}",
)
"""The recipe of arXiv 2202.06709 for all of its networks: batches of 96, mixup or CutMix, RandAugment, label smoothing,
stochastic depth; five epochs of warm-up within the 60. 5,000 of the 50,000 pictures of train are held out. The
published 300 epochs of 50,000 pictures take 25 times as many steps, so its learning rate is one of several that short
trainings try."""

RESNET = ("--network", "resnet18", "--channels", "32")
PRERESNET = ("--network", "preresnet18", "--channels", "16")
ALTERNET = ("--network", "alternet18", "--channels", "16")
VIT = ("--network", "vit6", "--channels", "64", "--config", "patch_size=4")
SWIN = ("--network", "swin8", "--channels", "32", "--config", "patch_size=2")
"""Windows of 4 on maps of 16, 8 and 4 points."""
GAP = ("--config", "head=gap")
PLAIN = ("--dropout", "0", "--no-smoothing")
MC_SMOOTH = ("--dropout", "0.3", "--smoothing")


@dataclass(frozen=True)
class Row:
    """One training."""

    name: str
    flags: tuple[str, ...]
    seed: int = 0
    epochs: int = EPOCHS
    subset: int = SUBSET
    """Pictures, equally many of every class; 0: all that are not held out."""

    @property
    def needs_rate(self) -> bool:
        """True where its learning rate is the one that the pilots choose."""
        return RATE in self.flags

    def folder(self, runs: Path) -> Path:
        return runs / self.name

    def model(self, runs: Path) -> Path:
        return self.folder(runs) / MODEL_NAME

    def arguments(self, data: Path, runs: Path, rate: float | None = None) -> list[str]:
        """Returns the arguments after `steadyseg train classification`; `rate` is for a row that needs it."""
        assert not self.needs_rate or rate is not None, f"{self.name} needs a learning rate"
        subset = [f"subset={self.subset}"] if self.subset else []
        flags = [f"{rate:g}" if flag == RATE else flag.replace(RUNS, str(runs)) for flag in self.flags]
        return [
            *flags,
            *COMMON,
            *subset,
            "--epochs",
            str(self.epochs),
            "--seed",
            str(self.seed),
            "--data",
            str(data),
            "--run",
            str(self.folder(runs)),
        ]


def whole(name: str, method: tuple[str, ...]) -> Row:
    """ResNet-18 on all of CIFAR-10."""
    return Row(f"cifar10-resnet18-{name}", (*SGD_WHOLE, *RESNET, *method), 0, WHOLE_EPOCHS, subset=0)


def again(name: str, method: tuple[str, ...]) -> Row:
    """A second cycle, to half the learning rate."""
    first = f"{RUNS}/cifar10-resnet18-{name}/{MODEL_NAME}"
    begun = ("--learning-rate", "0.05", "--config", f"init={first}")
    return Row(f"cifar10-resnet18-{name}-again", (*SGD_WHOLE, *RESNET, *method, *begun), 0, AGAIN_EPOCHS, subset=0)


def adamw(name: str, network: tuple[str, ...], seed: int = 0, subset: int = SUBSET) -> Row:
    """By the paper's recipe; fewer pictures are seen more often, so that all take equally many steps."""
    size = "" if subset == SUBSET else f"-{subset}"
    return Row(f"adamw-{name}{size}-{seed}", (*ADAMW, *network), seed, EPOCHS * SUBSET // subset, subset)


RATES = (1.25e-4, 5e-4, 2e-3)
"""The published learning rate and two larger ones."""
PILOTED = (
    ("vit6", ("--network", "vit6", "--channels", "64", "--config", "patch_size=4")),
    ("preresnet18", ("--network", "preresnet18", "--channels", "8")),
)
"""Narrow networks, of which an epoch takes a quarter of a minute."""
PILOT_EPOCHS = 12
PILOTS = {
    rate: tuple(
        Row(
            f"rate-{rate:g}-{name}",
            tuple(f"{rate:g}" if flag == RATE else flag for flag in (*ADAMW, *network)),
            0,
            PILOT_EPOCHS,
        )
        for name, network in PILOTED
    )
    for rate in RATES
}
"""By learning rate, its short trainings."""

SEEDS = (0, 1)
COMPARED = (("preresnet18", PRERESNET), ("vit6", VIT), ("alternet18", ALTERNET))
"""An epoch of 10,000 pictures takes 19, 17 and 29 s on one core (fp32, AVX-512); 0.70, 0.31 and 0.59 million weights.
AlterNet's blocks are those of the pre-activation ResNet but for three."""
ROWS = (
    whole("plain", PLAIN),
    whole("mc-smooth", MC_SMOOTH),
    again("plain", PLAIN),
    again("mc-smooth", MC_SMOOTH),
    *(row for rows in PILOTS.values() for row in rows),
    *(adamw(name, network, seed) for seed in SEEDS for name, network in COMPARED),
    adamw("vit6-gap", (*VIT, *GAP)),
    adamw("vit6-gap-local3", (*VIT, *GAP, "--config", "attention_window=3")),
    adamw("vit6-gap-local5", (*VIT, *GAP, "--config", "attention_window=5")),
    adamw("swin8", SWIN),
    *(adamw(name, network, subset=subset) for subset in (2500, 5000) for name, network in COMPARED),
)
"""Without the build-up, whose rows depend on what it found before (build_up.py)."""
