"""Study `attacks`: success rates of FGSM and PGD against each method."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.core.method import Method
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.pictures import Pictures
from steadyseg.studies.harness.target import TargetNetwork, at_size_of
from steadyseg.studies.robustness.flags import RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.measures.attacks import PGD_STEP_SHARE, PGD_STEPS, AttackSuccess, OnPixels, fgsm, pgd
from steadyseg.studies.robustness.tally import Row

ATTACKS: dict[str, Callable[..., Tensor]] = {"fgsm": fgsm, "pgd": pgd}
MAX_PASSES = 5
"""Dropout passes whose mean an attack sees the gradient of; the graphs of all are in memory at once."""


def study_attacks(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`rows` by network, method, attack and budget: accuracies and attack success rate; each method is attacked for
    itself."""
    found: dict[tuple[str, Method, str, float], AttackSuccess] = {}
    kinds = list(product(ATTACKS, options.eps))
    jobs = [
        (subject, method, kind, numbers)
        for subject in subjects
        for method in attacked_methods(subject, options)
        for kind in kinds
        for numbers in pictures.batches()
    ]
    for subject, method, (attack, levels), numbers in watch(jobs, "attacks"):
        seed = mix_seed(options.seed, pictures.places[numbers.start])
        clean, truth = clean_pixels(subject, pictures, numbers)
        attacked = attack_on(subject, method, attack, clean, truth, levels / 255, seed)
        before, after = (labels_of(subject, method, pixels, seed) for pixels in (clean, attacked))
        success = found.setdefault((subject.name, method, attack, levels), AttackSuccess(subject.meta.classes.void))
        success.update(before, after, truth)
    return {
        "pictures": len(pictures),
        "rows": [
            {
                "model": name,
                "mode": method.mode,
                "samples": method.samples,
                "attack": attack,
                "eps_levels": levels,
                "gradient_samples": gradient_samples(method),
                **success_row(success),
            }
            for (name, method, attack, levels), success in found.items()
        ],
        "notes": notes(subjects, options),
    }


def success_row(success: AttackSuccess) -> Row:
    """The row of an attack; its counts are of pictures or pixels, not of passes."""
    result = success.result()
    return {("counted" if key == "samples" else key): value for key, value in result.items()}


def notes(subjects: Sequence[TargetNetwork], options: RobustnessOptions) -> list[str]:
    """Budgets and knowledge of the attacks."""
    budgets = ", ".join(f"{levels:g}/255" for levels in options.eps)
    told = [
        f"budgets in pixel space, max-norm {budgets} of the range 0..1, at the size the network sees; untargeted, "
        "clamped to 0..1, not rounded to levels",
        f"pgd: {PGD_STEPS} steps of {PGD_STEP_SHARE:g} of the budget from a random start. The published code attacks "
        "normalised input without clamping and its tables do not state their budget: figures are not comparable with "
        "them",
        "attack success rate: share of the right answers that the attack makes wrong",
    ]
    if subjects[0].is_segmentation:
        told.append("pixels are counted; void ones neither count nor have a gradient")
    if any(len(attacked_methods(subject, options)) > 1 for subject in subjects):
        told.append(
            f"of the bnn methods the longest alone is attacked, through the mean of at most {MAX_PASSES} passes"
        )
    return told


def attacked_methods(subject: TargetNetwork, options: RobustnessOptions) -> list[Method]:
    """One pass without dropout, and the largest number of passes."""
    methods = subject.methods(options.sample_counts)
    return methods[:1] + methods[1:][-1:]


def gradient_samples(method: Method) -> int:
    return min(method.samples, MAX_PASSES)


def clean_pixels(subject: TargetNetwork, pictures: Pictures, numbers: range) -> tuple[Tensor, Tensor]:
    """(B, 3, h, w) in 0..1 at the network's size, and the labels there."""
    pixels = subject.pixels(pictures.images[numbers.start : numbers.stop]).float() / 255
    size = (pixels.shape[-2], pixels.shape[-1])
    return pixels.clamp(0.0, 1.0), subject.labels_at(pictures.truth(numbers).to(subject.device), size)


def attack_on(
    subject: TargetNetwork, method: Method, attack: str, clean: Tensor, truth: Tensor, eps: float, seed: int
) -> Tensor:
    """(B, 3, h, w) attacked pixels; `seed` draws the masks with which the attack is measured."""
    return ATTACKS[attack](
        pixel_network(subject, method),
        clean,
        truth,
        eps=eps,
        samples=gradient_samples(method),
        void=subject.meta.classes.void,
        seed=mix_seed(seed, 1),  # with the very masks that come later it would know what no attacker knows
    )


def pixel_network(subject: TargetNetwork, method: Method) -> nn.Module:
    """The network as an attack sees it: pixels (B, 3, h, w) in 0..1 -> tempered logits at the pictures' size."""
    subject.switch(method.mode, None)
    return OnPixels(subject.network, subject.normalize, subject.temperature(method))


def labels_of(subject: TargetNetwork, method: Method, pixels: Tensor, seed: int) -> Tensor:
    """(B,) or (B, h, w) predicted class ids of pixels (B, 3, h, w) in 0..1."""
    _, seen = next(subject.predict_pixels(pixels, [method], seed))
    like = torch.empty(len(pixels), *pixels.shape[-2:], device="meta")
    return at_size_of(seen.probs, like).argmax(1)
