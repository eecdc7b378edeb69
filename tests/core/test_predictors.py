"""MC dropout with a shared prefix against whole passes, and dropout switched off against none at all."""

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout, set_dropout_active
from steadyseg.core.errors import InputError
from steadyseg.core.familiarity.head import WatchedPredictor
from steadyseg.core.frame import FrameScores
from steadyseg.core.prediction import Prediction, entropy
from steadyseg.core.predictors import MonteCarlo, OnePass, SplitNetwork, first_tensor, forward_passes
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import PUBLISHED_PLACES, UNetOptions

SAMPLES = 5


def network(places: tuple[str, ...] = PUBLISHED_PLACES) -> UNet:
    torch.manual_seed(0)
    unet = UNet(4, UNetOptions(channels=2, dropout=0.5, dropout_places=places))
    for module in unet.modules():  # a map of size about 1 everywhere, so that the deepest stages reach the output
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    return unet.double().eval()


def picture() -> Tensor:
    return torch.randn(1, 3, 37, 50, generator=torch.Generator().manual_seed(1)).double()


def layers(unet: nn.Module) -> list[Dropout]:
    return [module for module in unet.modules() if isinstance(module, Dropout)]


def whole_pass(unet: UNet, x: Tensor) -> Tensor:
    """Every stage and every dropout, one after the other: no prefix."""
    from steadyseg.seg.networks.staged import Flow

    flow = Flow(x)
    for stage, dropout in zip(unet.stages, unet.dropouts, strict=True):
        flow = stage(flow)
        flow = flow._replace(x=dropout(flow.x))
    return unet.head(flow.x)


@pytest.mark.parametrize("places", [("enc1",), ("dec9",), tuple(PUBLISHED_PLACES[::-1])])
def test_sharing_the_prefix_equals_whole_passes_with_the_same_seed(places: tuple[str, ...]) -> None:
    unet, x = network(places), picture()
    with torch.no_grad():
        torch.manual_seed(7)
        passes = torch.stack([torch.softmax(whole_pass(unet, x) / 1.7, 1) for _ in range(SAMPLES)])
        torch.manual_seed(7)
        mixture = MonteCarlo(unet, SAMPLES, 1.7)(x)
    torch.testing.assert_close(mixture.probs, passes.mean(0), rtol=0, atol=1e-12)
    expected = torch.stack([entropy(probs) for probs in passes]).mean(0)
    torch.testing.assert_close(mixture.member_entropy, expected, rtol=0, atol=1e-12)
    assert mixture.disagreement.max() > 1e-3


@pytest.mark.parametrize("places", [PUBLISHED_PLACES, ("dec7",), ()])
def test_the_prefix_ends_before_the_first_dropout_and_runs_once(places: tuple[str, ...]) -> None:
    unet = network(places)
    names = ["enc1", "enc2", "enc3", "enc4", "enc5", "dec6", "dec7", "dec8", "dec9"]
    calls = dict.fromkeys([*names, "head"], 0)

    def count(name: str) -> None:
        calls[name] += 1

    for name, stage in zip(names, unet.stages, strict=True):
        stage.register_forward_hook(lambda *_, name=name: count(name))
    unet.head.register_forward_hook(lambda *_: count("head"))
    first = min((names.index(place) for place in places), default=len(names))
    with torch.no_grad():
        assert len(list(forward_passes(unet, picture(), SAMPLES))) == SAMPLES
    assert calls == {name: 1 if i <= first else SAMPLES for i, name in enumerate(names)} | {"head": SAMPLES}


def test_a_network_without_a_prefix_runs_whole_every_time() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 4, 3), Dropout(0.5), nn.Conv2d(4, 2, 1)).double().eval()
    calls: list[int] = []
    plain[0].register_forward_hook(lambda *_: calls.append(1))
    assert not isinstance(plain, SplitNetwork) and isinstance(network(), SplitNetwork)
    with torch.no_grad():
        torch.manual_seed(3)
        expected = torch.stack([torch.softmax(plain(picture()), 1) for _ in range(SAMPLES)]).mean(0)
        calls.clear()
        torch.manual_seed(3)
        mixture = MonteCarlo(plain, SAMPLES)(picture())
    assert len(calls) == SAMPLES
    torch.testing.assert_close(mixture.probs, expected, rtol=0, atol=1e-12)


def test_dropout_switched_off_equals_the_same_weights_without_dropout() -> None:
    unet, x = network(), picture()
    bare = UNet(4, dataclasses.replace(unet.options, dropout=0.0)).double().eval()
    bare.load_state_dict(unet.state_dict(), strict=True)
    assert not layers(bare)
    set_dropout_active(unet, False)
    with torch.no_grad():
        first, second, expected = MonteCarlo(unet, 3)(x), OnePass(unet)(x), OnePass(bare)(x)
    torch.testing.assert_close(first.probs, expected.probs, rtol=0, atol=1e-15)
    assert torch.equal(second.probs, expected.probs)
    assert first.disagreement.max() < 1e-12


def test_one_pass_with_dropout_on_is_one_member() -> None:
    unet, x = network(), picture()
    with torch.no_grad():
        torch.manual_seed(5)
        one = OnePass(unet, 2.0)(x)
        torch.manual_seed(5)
        logits = whole_pass(unet, x)
    torch.testing.assert_close(one.probs, torch.softmax(logits / 2.0, 1), rtol=0, atol=1e-12)
    torch.testing.assert_close(one.member_entropy, entropy(one.probs), rtol=0, atol=1e-12)
    assert isinstance(one, Prediction)


class InDictionary(nn.Module):
    """Gives its logits as torchvision's networks do."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"out": self.network(x)}


def test_logits_in_a_dictionary_are_found_and_a_network_that_draws_nothing_is_said() -> None:
    unet, x = network(), picture()
    set_dropout_active(unet, False)
    with torch.no_grad():
        assert torch.equal(OnePass(InDictionary(unet))(x).probs, OnePass(unet)(x).probs)
        torch.testing.assert_close(MonteCarlo(InDictionary(unet), 3)(x).probs, OnePass(unet)(x).probs)
    convolution = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.5))
    MonteCarlo(convolution, 3)  # torch's dropout draws in training mode
    with pytest.warns(UserWarning, match="all passes are equal and disagreement is 0; insert_dropout adds"):
        MonteCarlo(convolution.eval(), 3)
    with pytest.raises(InputError, match=r"the network gives a dict with aux, expected a tensor of logits"):
        first_tensor({"aux": x})


class MeanOfStages(nn.Module):
    """A head whose score is the mean of two stages' features, one before the first dropout layer and one behind all."""

    names = ("enc1", "dec9")

    def forward(self, features: list[Tensor], logits: Tensor) -> FrameScores:
        score = features[0].mean((1, 2, 3)) + features[1].mean((1, 2, 3))
        return FrameScores(score, features[1].mean(1))


def test_what_passes_share_is_seen_by_each_and_their_sights_are_averaged() -> None:
    unet, x = network(), picture()
    watched = WatchedPredictor(unet, MeanOfStages(), 1.3, SAMPLES)  # type: ignore[arg-type]
    torch.manual_seed(3)
    with torch.no_grad():
        mean = watched(x)
        torch.manual_seed(3)
        seen = [watched.forward_with_scores(x) for _ in range(SAMPLES)]
    assert len({float(scores.score) for _, scores in seen}) == SAMPLES
    probs = torch.stack([(logits / 1.3).softmax(1) for logits, _ in seen]).mean(0)
    assert mean.scores is not None and (mean.probs - probs).abs().max() < 1e-12
    for name in FrameScores._fields:
        one_by_one = torch.stack([getattr(scores, name) for _, scores in seen]).mean(0)
        assert (getattr(mean.scores, name) - one_by_one).abs().max() < 1e-12, name
