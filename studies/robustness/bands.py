"""The frequencies that a network depends on: accuracy under noise and attacks that are limited to one band, for each
band."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.corruptions.corruptions import require_picture
from steadyseg.core.method import Method
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.harness.pictures import Pictures
from steadyseg.studies.harness.target import TargetNetwork
from steadyseg.studies.robustness.attacks import attack_on, attacked_methods, clean_pixels
from steadyseg.studies.robustness.flags import RobustnessOptions, Watch, no_progress
from steadyseg.studies.robustness.measures.frequency import PAPER_CENTRES, Band, attack_in_band, band_noise
from steadyseg.studies.robustness.tally import Row, Tally, title_of

BANDS = [Band(centre) for centre in PAPER_CENTRES]


def study_bands(
    subjects: Sequence[TargetNetwork], pictures: Pictures, options: RobustnessOptions, watch: Watch = no_progress
) -> dict[str, Any]:
    """`rows` by network, method, noise or attack, and band, with the drop in accuracy against the clean pictures.

    The noise of a picture is the same for every network of one size. The attack is PGD against each method itself,
    within the largest budget; one band of it is added. Raises InputError for grey pictures.
    """
    for image in pictures.images:
        require_picture(image)
    eps = max(options.eps)
    tallies = {(rms, band): Tally(subjects) for rms in (*options.noise, None) for band in BANDS}  # None: the attack
    clean = Tally(subjects)
    jobs = [
        (subject, method, numbers)
        for subject in subjects
        for method in attacked_methods(subject, options)
        for numbers in pictures.batches()
    ]
    for subject, method, numbers in watch(jobs, "bands"):
        seed = mix_seed(options.seed, pictures.places[numbers.start])
        pixels, truth = clean_pixels(subject, pictures, numbers)
        attack = attack_on(subject, method, "pgd", pixels, truth, eps / 255, seed)
        look_at(subject, method, pixels, truth, seed, clean)
        for (rms, band), tally in tallies.items():
            if rms is None:
                shown = attack_in_band(pixels, attack, band)
            else:
                shown = (pixels + noise_of(pictures, numbers, pixels, band, rms, options.seed)).clamp(0.0, 1.0)
            look_at(subject, method, shown, truth, seed, tally)
    base = clean.rows()
    accuracy = {title_of(row): row["accuracy"] for row in base}
    rows: list[Row] = []
    for (rms, band), tally in tallies.items():
        about = {"noise_rms": rms, "eps_levels": eps if rms is None else None}
        for row in tally.rows(**about, centre=band.centre, half_width=band.half_width):
            rows.append({**row, "accuracy_drop": accuracy[title_of(row)] - row["accuracy"]})
    return {
        "pictures": len(pictures),
        "clean": base,
        "rows": rows,
        "notes": [
            "bands are square rings of the spectrum, 0.1 pi wide; 1 is the Nyquist frequency, a period of two pixels "
            "of what the network sees",
            "noise: Gaussian, of the given root mean square in every band (ImageNet-C's gaussian_noise at severity 1 "
            "has 0.08 over all bands together)",
            f"attack: the part of a PGD attack of {eps:g}/255 that lies in the band, as large as it is",
        ],
    }


def look_at(subject: TargetNetwork, method: Method, pixels: Tensor, truth: Tensor, seed: int, tally: Tally) -> None:
    for _, seen in subject.predict_pixels(pixels, [method], seed):
        tally.add(subject, method, seen.probs, truth)


def noise_of(pictures: Pictures, numbers: range, pixels: Tensor, band: Band, rms: float, seed: int) -> Tensor:
    """(B, 3, h, w); of a picture the same white noise for every band."""
    drawn = [
        band_noise(tuple(pixels.shape[1:]), band, rms, mix_seed(seed, pictures.places[number])) for number in numbers
    ]
    return torch.stack(drawn).to(pixels.device)
