"""The trainings of the ablation, in order: ResNet-18 of width 16 on CIFAR-10, every variant with two seeds."""

from dataclasses import dataclass, field, replace

from steadyseg.studies.harness.trainings import Job

SEEDS = (0, 1)
COMMON = (
    "classification --data {data} --preset small --channels 16 --dropout 0.3 --epochs 30 "
    "--config evaluate_every=0 threads=1"
).split()
"""The preset `small` with fewer epochs; one thread, so that it repeats bit by bit."""


@dataclass(frozen=True)
class Variant:
    """One network of a table, with the published NLL, accuracy and ECE in percent of ResNet-18 on CIFAR-100."""

    name: str
    words: str
    flags: tuple[str, ...]
    """Flags of `steadyseg train` besides `COMMON`."""
    published: tuple[float, float, float] | None = None

    def training(self, seed: int) -> Job:
        """The row of the queue."""
        return Job(f"{self.name}-{seed}", (*COMMON, *self.flags, "--seed", str(seed)))


@dataclass(frozen=True)
class Ablation:
    """One table: variants against the first of them."""

    name: str
    title: str
    source: str
    variants: tuple[Variant, ...] = field(default=())


def smooth(prob: str, blur: int) -> tuple[str, ...]:
    return ("--smoothing", "--config", f"prob={prob}", f"blur={blur}")


NONE = Variant("none", "none", (), (0.848, 77.3, 3.01))
TANH = Variant("blur2-tanh", "Blur ∘ ReLU ∘ tanh", smooth("tanh", 2), (0.801, 78.9, 2.56))
TANH_ALONE = Variant("blur1-tanh", "ReLU ∘ tanh", smooth("tanh", 1), (0.838, 77.7, 2.92))
ABLATIONS = (
    Ablation(
        "prob",
        "Prob",
        "arXiv 2105.12639, Table B.1",
        (
            NONE,
            TANH,
            Variant("blur2-none", "Blur", smooth("none", 2), (0.806, 78.6, 2.56)),
            TANH_ALONE,
            Variant("blur2-relu6", "Blur ∘ ReLU6", smooth("relu6", 2), (0.805, 78.9, 2.59)),
            Variant("blur2-constant", "Blur ∘ Constant(5)", smooth("constant", 2), (0.811, 78.5, 1.84)),
            Variant("blur1-relu6", "ReLU6", smooth("relu6", 1), (0.844, 77.4, 2.74)),
            Variant("blur1-constant", "Constant(5)", smooth("constant", 1), (0.825, 77.7, 1.87)),
            Variant("blur2-softmax", "Blur ∘ softmax", smooth("softmax", 2)),
            Variant("blur2-bn-tanh", "Blur ∘ ReLU ∘ tanh ∘ BatchNorm", smooth("bn-tanh", 2)),
        ),
    ),
    Ablation(
        "blur",
        "Size of the blur",
        "arXiv 2105.12639, Table B.2",
        (
            replace(TANH_ALONE, words="1 (Prob alone)", published=(0.840, 77.6, 2.63)),
            replace(TANH, words="2"),
            Variant("blur3-tanh", "3", smooth("tanh", 3), (0.822, 78.7, 2.86)),
            Variant("blur5-tanh", "5", smooth("tanh", 5), (0.837, 78.4, 3.05)),
        ),
    ),
    Ablation(
        "head",
        "Head",
        "arXiv 2105.12639, Table C.1",
        (
            replace(NONE, words="GAP", published=(0.841, 77.5, 2.92)),
            Variant("head-mlp", "MLP", ("--config", "head=mlp"), (1.040, 74.8, 9.55)),
            Variant("head-gmaxp", "global max", ("--config", "head=gmaxp"), (0.905, 76.3, 5.23)),
            Variant("head-gmedp", "global median", ("--config", "head=gmedp"), (0.889, 76.4, 5.03)),
            Variant("head-gap-clip", "GAP, bounded", ("--config", "head=gap-clip")),
            Variant("head-gap-mlp", "GAP, then MLP", ("--config", "head=gap-mlp")),
        ),
    ),
    Ablation(
        "pre-activation",
        "Pre-activation",
        "arXiv 2105.12639, Table C.2",
        (
            replace(NONE, words="after the sum", published=(0.937, 76.9, 5.11)),
            Variant("preact", "before the convolution", ("--network", "preresnet18"), (0.872, 77.6, 5.53)),
        ),
    ),
)
"""In the order in which they are trained."""


def to_train() -> list[Job]:
    """Every variant once, table by table, with all seeds; time cuts the list off at its end."""
    known = {variant.name: variant for ablation in ABLATIONS for variant in ablation.variants}
    return [variant.training(seed) for variant in known.values() for seed in SEEDS]
