"""The study `hessian`: eigenvalues of the loss's Hessian mini-batch by mini-batch, and the density of all of them."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor

from steadyseg.core.errors import InputError
from steadyseg.core.seeds import mix_seed
from steadyseg.studies.analysis.measures import spectrum
from steadyseg.studies.analysis.measures.curvature import Hessian, require_memory
from steadyseg.studies.analysis.measures.nll import score
from steadyseg.studies.analysis.study import Results, Study, StudyContext
from steadyseg.studies.analysis.subjects import StudyTarget
from steadyseg.studies.analysis.training_pictures import TrainingPictures
from steadyseg.studies.harness.report_folder import Table, table_of

ABOUT = (
    "The Hessian is the matrix of the second derivatives of a mini-batch's mean NLL with respect to all weights. "
    "Products with it are exact (double backward), in 32 bits, at the trained weights, with BatchNorm's running "
    "statistics. Dropout is off unless a note says otherwise. The top eigenvalues are those of largest magnitude, with "
    "their signs. Lanczos finds those of both signs at once (published: power iteration); `residual` is the largest "
    "|H v - a v| / |a| among them. NEP is the share of negative eigenvalues among the top ones, APE the mean of the "
    "positive ones. With L2 every eigenvalue is larger by the weight decay, because half the decay times |w|^2 is "
    "added to the loss. Stochastic Lanczos quadrature finds the density of all eigenvalues, from one start vector of "
    "random signs for each mini-batch. The mean of the density is the trace over the number of weights. Near 0 it "
    "cannot tell small negative eigenvalues from small positive ones. ± is the standard deviation over mini-batches."
)
EXTRA_VECTORS = 6
"""Vectors in memory beside the basis: gradient, its product, the iterate, and temporary ones."""


def measure(context: StudyContext) -> Iterator[Results]:
    job = context.job
    for target in context.targets:
        prepare(target, job)
        if job.dropout and target.subject.has_dropout:
            context.note(f"{target.name}: dropout on, one draw of its masks for each mini-batch")
    size = job.batch_size or (1 if context.is_segmentation else 16)
    batches = [numbers for numbers in context.batches(size) if len(numbers) == size]
    if not batches:
        raise InputError(
            f"{len(context.targets[0].pictures)} pictures fill no mini-batch of {size}; use a smaller batch_size"
        )
    decays = {target.name: decay_of(target, job.weight_decay) for target in context.targets}
    rows: list[Results] = []
    for number, numbers in enumerate(context.track(batches, "mini-batches")):
        for target in context.targets:
            rows.append(row_of(target, numbers, number, context, decays[target.name]))
        yield {
            "rows": rows,
            "batch_size": size,
            "top": job.top,
            "networks": [summary(rows, s.name) for s in context.targets],
        }
    for name, decay in decays.items():
        if decay is None:
            context.note(
                f"{name}: its record has no weight decay, so nothing is said with L2; give --config weight_decay"
            )


def prepare(target: StudyTarget, job: Any) -> None:
    """The network's weights take gradients; InputError where they, k times, do not fit into memory."""
    network = target.subject.network.to(memory_format=torch.contiguous_format).requires_grad_(True)
    weights = sum(weight.numel() for weight in network.parameters())
    if job.top >= weights:
        raise InputError(f"--config top={job.top}: {target.name} has {weights} weights; ask for fewer eigenvalues")
    require_memory(weights, spectrum.kept_vectors(job.top) + EXTRA_VECTORS, 4, f"{target.name}: --config top={job.top}")
    require_memory(weights, job.steps + EXTRA_VECTORS, 4, f"{target.name}: --config steps={job.steps}")


def decay_of(target: StudyTarget, given: float | None) -> float | None:
    """The given weight decay, else the decay of the network's training."""
    if given is not None:
        return given
    try:
        return float(target.subject.meta.training["config"]["loop"]["weight_decay"])
    except (KeyError, TypeError, ValueError):
        return None


def row_of(target: StudyTarget, numbers: range, number: int, context: StudyContext, decay: float | None) -> Results:
    """Measures one mini-batch of one network."""
    job, seed = context.job, mix_seed(context.options.seed, number)
    pictures, labels = TrainingPictures(target, context.options.seed, job.augmented).batch(numbers)
    network, void = target.subject.network, target.subject.meta.classes.void
    target.subject.switch("bnn" if job.dropout else "dnn", seed)

    def loss() -> Tensor:
        found = score(network(pictures), labels, void)
        return found.nll / max(1, found.samples)

    hessian = Hessian(network, loss)
    pairs = spectrum.top_eigenpairs(hessian, job.top, iterations=job.iterations, seed=seed)
    start = spectrum.random_signs(hessian.gradient, seed)
    density = spectrum.lanczos(hessian, start, job.steps) if job.steps else None
    return {
        "model": target.name,
        "batch": number,
        "loss": hessian.loss,
        "gradient_norm": float(hessian.gradient.norm()),
        "eigenvalues": [pair.value for pair in pairs],
        "residual": max(pair.residual for pair in pairs),
        "weight_decay": decay,
        "nodes": density.nodes.tolist() if density else [],
        "weights": density.weights.tolist() if density else [],
    }


def summary(rows: Sequence[Results], model: str) -> Results:
    """Summary of a network's eigenvalues over its mini-batches."""
    mine = [row for row in rows if row["model"] == model]
    largest = [max(row["eigenvalues"], key=abs) for row in mine]
    pooled = [value for row in mine for value in row["eigenvalues"]]
    decay = mine[0]["weight_decay"]
    found: Results = {
        "model": model,
        "batches": len(mine),
        "loss": fmean(row["loss"] for row in mine),
        "largest": fmean(largest),
        "largest_sd": spread(largest),
        "weight_decay": decay,
        **signs(pooled, ""),
        **({} if decay is None else signs([value + decay for value in pooled], "_l2")),
        "residual": max(row["residual"] for row in mine),
    }
    if mine[0]["nodes"]:
        parts = [quadrature(row) for row in mine]
        traces = [part.moment(1) for part in parts]
        found |= {
            "mean_eigenvalue": fmean(traces),
            "mean_eigenvalue_sd": spread(traces),
            "most_negative": fmean(float(part.nodes.min()) for part in parts),
        }
    return found


def signs(values: Sequence[float], ending: str) -> Results:
    """Share of negative eigenvalues (NEP) and mean of the positive ones (APE)."""
    positive = [value for value in values if value > 0]
    return {
        f"nep{ending}": sum(value < 0 for value in values) / len(values),
        f"ape{ending}": fmean(positive) if positive else None,
    }


def spread(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def quadrature(row: Results) -> spectrum.Quadrature:
    return spectrum.Quadrature(*(torch.tensor(row[key], dtype=torch.float64) for key in ("nodes", "weights")))


TOP = (
    *(("network", "model"), ("batches", "batches"), ("loss", "loss"), ("largest", "largest"), ("±", "largest_sd")),
    *(("NEP", "nep"), ("APE", "ape"), ("NEP with L2", "nep_l2"), ("APE with L2", "ape_l2"), ("residual", "residual")),
)
DENSITY = (
    ("network", "model"),
    ("mean eigenvalue (trace / weights)", "mean_eigenvalue"),
    ("±", "mean_eigenvalue_sd"),
    ("most negative node", "most_negative"),
)


def tables(results: Results) -> list[Table]:
    networks = results["networks"]
    title = f"Top {results['top']} eigenvalues of mini-batches of {results['batch_size']}"
    found = [table_of(title, TOP, networks)]
    if "mean_eigenvalue" in networks[0]:
        found.append(table_of("Density of all eigenvalues", DENSITY, networks))
    return found


STUDY = Study("hessian", "Hessian of the loss", ABOUT, measure, tables, (128, 8), split="train")
