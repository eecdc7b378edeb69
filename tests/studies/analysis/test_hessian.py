"""Eigenvalues and densities against dense Hessians: of a quadratic in closed form, and of tiny networks."""

import math

import pytest
import torch
import torch.nn.functional as F
from refusals import refusal
from torch import Tensor, nn

from steadyseg.classification.networks.attention import WindowAttention
from steadyseg.core.errors import CheckFailed
from steadyseg.core.smoothing import SpatialSmoothing
from steadyseg.studies.analysis.measures.curvature import Hessian, require_memory
from steadyseg.studies.analysis.measures.spectrum import Quadrature, lanczos, random_signs, top_eigenpairs


class Quadratic(nn.Module):
    """w A w / 2 + b w, whose Hessian is A."""

    def __init__(self, eigenvalues: list[float]) -> None:
        super().__init__()
        n = len(eigenvalues)
        turn, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(3)))
        self.matrix = turn @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ turn.T
        self.w = nn.Parameter(torch.ones(n, dtype=torch.float64))

    def forward(self) -> Tensor:
        return self.w @ self.matrix @ self.w / 2 + self.w.sum()


def test_a_quadratics_hessian_is_its_matrix() -> None:
    quadratic = Quadratic([5.0, -5.0, 2.0, 0.5, 0.0])
    hessian = Hessian(quadratic, quadratic)
    torch.testing.assert_close(hessian.dense(), quadratic.matrix, atol=1e-12, rtol=0)
    torch.testing.assert_close(hessian.gradient, quadratic.matrix @ quadratic.w.detach() + 1)
    found = top_eigenpairs(hessian, 4, tolerance=1e-9)
    assert sorted(pair.value for pair in found) == pytest.approx([-5.0, 0.5, 2.0, 5.0], abs=1e-9)
    assert max(pair.residual for pair in found) < 1e-5


def test_a_linear_loss_has_none() -> None:
    w = nn.Linear(3, 1).double()
    hessian = Hessian(w, lambda: w(torch.ones(1, 3, dtype=torch.float64)).sum())
    assert top_eigenpairs(hessian, 2)[0].value == 0.0


def tiny(name: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Tanh(), nn.Linear(5, 3)).double(), torch.randn(
            6, 3, 2, 2, dtype=torch.float64
        )
    if name == "attention":
        attention = WindowAttention(3, 4, heads=2, head_width=3, window=2)
        network = nn.Sequential(attention, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
        return network.double(), torch.randn(4, 3, 4, 4, dtype=torch.float64)
    first = [nn.Conv2d(3, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU(), SpatialSmoothing(), nn.MaxPool2d(2)]
    head = [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)]
    return nn.Sequential(*first, *head).double().eval(), torch.randn(4, 3, 10, 10, dtype=torch.float64)


@pytest.mark.parametrize("name", ["mlp", "attention", pytest.param("convolutions", marks=pytest.mark.slow)])
def test_tiny_networks_agree_with_their_dense_hessian_to_six_digits(name: str) -> None:
    network, pictures = tiny(name)
    labels = torch.arange(len(pictures)) % 3
    hessian = Hessian(network, lambda: F.cross_entropy(network(pictures), labels))
    dense = reference(network, lambda: F.cross_entropy(network(pictures), labels))
    torch.testing.assert_close(hessian.dense(), dense, atol=1e-6, rtol=0)
    exact = torch.linalg.eigvalsh(dense)
    by_size = exact[exact.abs().argsort(descending=True)]
    assert by_size[:8].min() < 0 < by_size[:8].max()  # both ends of the spectrum
    found = top_eigenpairs(hessian, 8)
    assert [pair.value for pair in found] == pytest.approx(by_size[:8].tolist(), abs=1e-6)
    assert max(pair.residual for pair in found) <= 1e-3
    measure = lanczos(hessian, random_signs(hessian.gradient, 1), hessian.size)
    assert float(measure.nodes.max()) == pytest.approx(float(exact.max()), abs=1e-6)
    assert float(measure.nodes.min()) == pytest.approx(float(exact.min()), abs=1e-6)


def reference(network: nn.Module, loss: object) -> Tensor:
    """Dense Hessian: the Jacobian of the gradient, row by row, with attention by its plain formula."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    weights = list(network.parameters())
    with sdpa_kernel(SDPBackend.MATH):
        gradients = torch.autograd.grad(loss(), weights, create_graph=True)  # type: ignore[operator]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = []
    for entry in flat:
        parts = torch.autograd.grad(entry, weights, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows)


def test_the_density_has_the_trace_and_the_shares_of_all_eigenvalues() -> None:
    values = [-1.0] * 10 + [0.0] * 70 + [4.0] * 20
    quadratic = Quadratic(values)
    hessian = Hessian(quadratic, quadratic)
    parts = [lanczos(hessian, random_signs(hessian.gradient, seed), 5) for seed in range(200)]
    assert all(len(part.nodes) <= 4 for part in parts)  # three eigenvalues: the Krylov space ends
    nodes, weights = (torch.cat([getattr(part, name) for part in parts]) for name in ("nodes", "weights"))
    whole = Quadrature(nodes, weights / len(parts))
    assert float(whole.weights.sum()) == pytest.approx(1.0)
    assert whole.moment(1) == pytest.approx(0.7, abs=0.05) and whole.moment(2) == pytest.approx(3.3, abs=0.2)
    assert float(whole.weights[whole.nodes < -0.5].sum()) == pytest.approx(0.1, abs=0.02)


def test_one_vectors_quadrature_has_exact_moments() -> None:
    quadratic = Quadratic([float(i) for i in range(-4, 9)])
    hessian = Hessian(quadratic, quadratic)
    start = random_signs(hessian.gradient, 5)
    measure, v = lanczos(hessian, start, 4), start / start.norm()
    moving = v
    for power in range(1, 8):
        moving = quadratic.matrix @ moving
        assert measure.moment(power) == pytest.approx(float(v @ moving), rel=1e-9)


def test_what_cannot_be_is_one_line() -> None:
    quadratic = Quadratic([1.0, 2.0])
    hessian = Hessian(quadratic, quadratic)
    assert "3 eigenvalues of 2 weights" in refusal(top_eigenpairs, hessian, 3)
    many = Quadratic([float(i) for i in range(60)])
    with pytest.raises(CheckFailed, match="of 5 eigenpairs are within 1e-12 after 1 restarts"):
        top_eigenpairs(Hessian(many, many), 5, iterations=1, tolerance=1e-12)
    assert "no weights" in refusal(Hessian, nn.ReLU(), lambda: torch.zeros(()))
    assert "about 4.0 GiB, and 1.0 GiB are free" in refusal(require_memory, 2**20, 1024, 4, "--config top=1022", 2**30)
    with pytest.raises(CheckFailed, match="the loss is nan"):
        Hessian(quadratic, lambda: quadratic() * math.nan)
    with pytest.raises(CheckFailed, match="not finite"):
        _ = Hessian(quadratic, lambda: (quadratic.w - 1.0).abs().sum().sqrt()) @ torch.ones(2, dtype=torch.float64)
