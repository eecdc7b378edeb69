"""Test that two sides of the MC dropout comparison draw from one distribution; times are taken only after it passes."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from steadyseg.core.dropout import set_dropout_active
from steadyseg.studies.peers.mc_sides import MODEL, OURS, SIDES, Setup, WholePasses, build, our_network, peer_network

PASSES = 30
ROUNDING = 1e-5
"""|Δp| that the order of float32 sums may make."""
MIN_Z, MAX_Z, MAX_TAIL, MAX_SPREAD, MAX_ENTROPY_Z = 0.70, 0.90, 0.01, 0.03, 4.0
"""Equal sides: |z| has mean 0.80 and 0.4 % of it above 3 (t with 58 degrees of freedom); README.md has what was
measured. A mean below LEAST_Z would say that the sides share their random numbers."""


class Disagreement(Exception):
    """The sides do not compute the same thing."""


@dataclass(frozen=True)
class Agreement:
    """PASSES passes of ours against as many of another side."""

    values: int
    """Probabilities that were compared (pixels x classes with a mean in 0.01..0.99)."""
    mean_z: float
    """Mean |difference of the two means| / its standard error."""
    tail: float
    """Share of them above 3."""
    spread: float
    """The other's mean standard deviation over passes / ours: two sides may share the mean and not the dropout."""
    entropy: tuple[float, float]
    """Mean entropy of a pass over the frame in nats, ours and the other's."""
    entropy_z: float
    """Their difference / its standard error."""

    @property
    def holds(self) -> bool:
        means = MIN_Z <= self.mean_z <= MAX_Z and self.tail <= MAX_TAIL
        return means and abs(self.spread - 1) <= MAX_SPREAD and abs(self.entropy_z) <= MAX_ENTROPY_Z


def agreement(ours: Tensor, other: Tensor) -> Agreement:
    """Probabilities (N, K, h, w) and (M, K, h, w) of single passes -> their agreement."""
    a, b = ours.mean(0), other.mean(0)
    error = (ours.var(0) / len(ours) + other.var(0) / len(other)).sqrt()
    undecided = ((a + b) / 2 - 0.5).abs() < 0.49  # nearer to 0 or 1 a mean hangs on a few passes and z is not normal
    z = ((a - b).abs() / error)[undecided]
    e, f = (torch.special.entr(probs).sum(1).mean((1, 2)) for probs in (ours, other))
    entropy_z = (e.mean() - f.mean()) / (e.var() / len(e) + f.var() / len(f)).sqrt()
    means = (round(float(e.mean()), 4), round(float(f.mean()), 4))
    tail = float((z > 3).float().mean())
    spread = float(other.std(0).mean() / ours.std(0).mean())
    mean_z = round(float(z.mean()), 3)
    return Agreement(z.numel(), mean_z, round(tail, 5), round(spread, 4), means, round(float(entropy_z), 2))


def passes(side: str, setup: Setup) -> Tensor:
    """(PASSES, K, h, w) probabilities from the head inside one measured call; its results must be their means."""
    call, network = build(side, PASSES, setup)
    logits: list[Tensor] = []
    network.head.register_forward_hook(lambda module, inputs, output: logits.append(output))
    probs_mean, entropy_mean = call()
    probs = torch.softmax(torch.cat(logits), dim=1)
    if len(probs) != PASSES:
        raise Disagreement(f"{side}: {len(probs)} passes in one call, expected {PASSES}")
    off = float((probs_mean[0] - probs.mean(0)).abs().max())
    off = max(off, float((entropy_mean[0] - torch.special.entr(probs).sum(1).mean(0)).abs().max()))
    if off > ROUNDING:
        raise Disagreement(
            f"{side}: its results are {off:.1e} off the means of its passes, at most {ROUNDING} expected"
        )
    return probs


def check(setup: Setup) -> dict[str, object]:
    """Prints and returns how the other sides agree with ours; Disagreement when one does not."""
    (network, frame), (peer, _) = our_network(setup), peer_network(setup)
    set_dropout_active(network, False)
    difference = float((torch.softmax(network(frame), 1) - torch.softmax(WholePasses(peer)(frame), 1)).abs().max())
    print(f"{MODEL}, dropout off on both sides: largest |Δp| {difference:.1e}")
    if difference > ROUNDING:
        raise Disagreement(f"without dropout the probabilities differ by {difference:.1e}, at most {ROUNDING} expected")
    found: dict[str, object] = {"passes": PASSES, "difference_without_dropout": difference}
    ours = passes(OURS, setup)
    for side in list(SIDES)[1:]:
        result = agreement(ours, passes(side, setup))
        print(
            f"{side:10s} against {OURS}, {PASSES} passes each: mean |z| {result.mean_z:.3f}, above 3 "
            f"{result.tail:.2%}, spread x {result.spread:.3f}, entropy {result.entropy[1]:.4f} / "
            f"{result.entropy[0]:.4f} (z {result.entropy_z:+.2f})",
            flush=True,
        )
        if not result.holds:
            raise Disagreement(
                f"{side} does not agree with {OURS}: mean |z| must lie in {MIN_Z}..{MAX_Z}, at most {MAX_TAIL:.0%} "
                f"above 3, spread within {MAX_SPREAD:.0%}, entropy within {MAX_ENTROPY_Z:g} standard errors"
            )
        found[side] = asdict(result)
    return found
