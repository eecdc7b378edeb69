"""The trainings behind the tables of docs/explanation/papers.md, as words after `steadyseg train`."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

FORMS = {"plain": (False, False), "smooth": (False, True), "mc": (True, False), "mc-smooth": (True, True)}
"""(dropout, smoothing)"""
NAMES, ENDS = {methods: name for name, methods in FORMS.items()}, ("plain", "mc-smooth")


@dataclass(frozen=True)
class Training:
    """One training; words in braces stand for folders and files of `Places`."""

    flags: str
    """Words after `steadyseg train` but --run and --device."""
    minutes: float | None = None
    """Of one core; of a training that did not run scaled by pictures and weights. None where no run has told."""


@dataclass(frozen=True)
class Places:
    """Where the data lie and the runs go."""

    data: Path
    runs: Path

    def words(self, text: str, **more: Any) -> list[str]:
        """The words of a command, with the braces replaced."""
        places = {name: self.data.absolute() / name for name in ("camvid", "cifar10", "cifar10-jpeg")}
        places |= {name: self.runs.absolute() / f"{name}.txt" for name in EXCLUDED}
        return [word.format_map({**places, **more}) for word in text.split()]

    def write_lists(self) -> None:
        """Writes the lists of excluded pictures that the data give."""
        names = [Path(line.split()[0]).stem for line in (self.data / "camvid" / "train.txt").read_text().splitlines()]
        for file, keep in EXCLUDED.items():
            left_out = [name for place, name in enumerate(names) if not keep(place, name)]
            (self.runs / f"{file}.txt").write_text("\n".join(left_out) + "\n")


EXCLUDED: dict[str, Any] = {
    "few": lambda place, name: place % 4 == 0,
    "val-drive": lambda place, name: not name.startswith("0016E5"),
}
"""By list, whether a picture of CamVid's train stays: 92 of 367; all that are not of val's drive."""


def forms(
    prefix: str, flags: str, rate: float, minutes: float | None, *seeds: int, kinds: Iterable[str] = FORMS
) -> dict[str, Training]:
    """A training without both methods, with each and with both, for each seed."""
    found = {}
    for seed, (dropout, smoothing) in product(seeds, (FORMS[kind] for kind in kinds)):
        form = f"--dropout {rate if dropout else 0} --{'' if smoothing else 'no-'}smoothing"
        found[f"{prefix}-{NAMES[dropout, smoothing]}-{seed}"] = Training(f"{flags} {form} --seed {seed}", minutes)
    return found


def both(name: str, flags: str, minutes: float | None = None, seeds: tuple[int, ...] = (0, 1)) -> dict[str, Training]:
    return {f"{name}-{seed}": Training(f"{flags} --seed {seed}", minutes) for seed in seeds}


REPLICA = "seg --preset replica --data {camvid} --hold-out none"
AS_PUBLISHED = f"{REPLICA} --config order=conv-bn-relu class_weights=median-frequency-all"
FAST = "precision=bf16 threads=1"
"""On a core with bf16 an epoch takes 9.6 s instead of 13.6 s."""
SHORT = f"{REPLICA} --channels 16 --epochs 40 --config step_epochs=31"
CIFAR = "classification --preset small --data {cifar10} --config threads=1"
ABLATION = f"{CIFAR} --channels 16 --epochs 30 --dropout 0.3"
ADAMW = (
    "classification --preset adamw --data {cifar10-jpeg} --learning-rate 0.002 "
    "--config evaluate_every=0 threads=1 warmup=0.083333"
)
WHOLE, FEWER = f"{ADAMW} --hold-out 0.8 --epochs 60", f"{ADAMW} --hold-out 0.95 --epochs 240"
"""10,000 of 50,000 pictures, and 2,500."""
VIT = "--network vit6 --channels 64 --config patch_size=4"
PRERESNET, ALTERNET = "--network preresnet18 --channels 16", "--network alternet18 --channels 16"
SMOOTHED = {
    **{f"blur2-{prob}": f"prob={prob} blur=2" for prob in ("none", "relu6", "constant", "softmax", "bn-tanh")},
    **{f"blur1-{prob}": f"prob={prob} blur=1" for prob in ("tanh", "relu6", "constant")},
    **{f"blur{size}-tanh": f"prob=tanh blur={size}" for size in (2, 3, 5)},
}
"""Tables B.1 and B.2: Prob and the size of the blur."""
HEADS = ("mlp", "gmaxp", "gmedp", "gap-clip", "gap-mlp")

TRAININGS: dict[str, Training] = {
    **forms("paper", SHORT, 0.5, None, 0),
    **both("paper-plain", f"{SHORT} --dropout 0 --no-smoothing", None, (1, 2)),
    **forms("cpu", "seg --preset cpu --data {camvid} --epochs 40", 0.2, None, 0),
    **forms("replica180", f"{AS_PUBLISHED} --channels 16 --size 180", 0.2, 70, 0, 1),
    **forms("replica360", f"{AS_PUBLISHED} --channels 64 --size 360", 0.5, None, 0, 1),
    **forms("few180", f"{AS_PUBLISHED} exclude={{few}} {FAST} --channels 32 --size 180", 0.2, 48, 0, 1, kinds=ENDS),
    **forms(
        "unseen180", f"{AS_PUBLISHED} exclude={{val-drive}} {FAST} --channels 16 --size 180", 0.2, 22, 0, 1, kinds=ENDS
    ),
    **forms("resnet18", f"{CIFAR} --channels 32", 0.3, 19, 0, 1),
    **forms("vgg16", f"{CIFAR} --network vgg16 --channels 32 --config head=gap", 0.3, None, 0, kinds=ENDS),
    **forms("hard", "classification --preset fast --data {cifar10} --epochs 16 --config label_smoothing=0", 0.3, 39, 0),
    **both("none", ABLATION),
    **both("preact", f"{ABLATION} --network preresnet18"),
    **{k: v for name, one in SMOOTHED.items() for k, v in both(name, f"{ABLATION} --smoothing --config {one}").items()},
    **{k: v for name in HEADS for k, v in both(f"head-{name}", f"{ABLATION} --config head={name}").items()},
    **both("preresnet18", f"{WHOLE} {PRERESNET}", 26),
    **both("vit6", f"{WHOLE} {VIT}", 24),
    **both("alternet18", f"{WHOLE} {ALTERNET}", 39),
    **both("vit6-gap", f"{WHOLE} {VIT} head=gap", 30, (0,)),
    **both("vit6-local3", f"{WHOLE} {VIT} head=gap attention_window=3", 21, (0,)),
    **both("vit6-local5", f"{WHOLE} {VIT} head=gap attention_window=5", 22, (0,)),
    **both("preresnet18-2500", f"{FEWER} {PRERESNET}", 29, (0,)),
    **both("vit6-2500", f"{FEWER} {VIT}", 24, (0,)),
    **{
        name: one
        for at in ("0,0,0,0", "0,0,0,1", "0,0,1,0", "0,1,0,0", "1,0,0,0")
        for name, one in both(
            f"build-up-{at.replace(',', '')}",
            f"{ADAMW} --hold-out 0.8 --epochs 15 --network alternet34 --channels 8 --config attention={at}",
            10,
        ).items()
    },
}
