"""Undoing class weights gives the probabilities of the data back, in the logits and in the last bias alike."""

import torch

from steadyseg.seg.calibrate import adjust_head
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions

WEIGHTS = torch.tensor([0.2, 1.0, 5.0])


def without_class_weights(logits: torch.Tensor) -> torch.Tensor:
    """(B, K, ...) logits of a network trained with the weights -> the logits without their effect."""
    return logits - WEIGHTS.log().view(1, -1, *[1] * (logits.ndim - 2))


def test_the_minimum_of_a_weighted_loss_is_taken_back_to_the_data() -> None:
    """Logits fitted by gradient descent to labels with known shares, under the weighted loss that training uses."""
    shares = torch.tensor([0.7, 0.2, 0.1])
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = -(WEIGHTS * shares * torch.log_softmax(logits, 0)).sum()
        value.backward()
        return value

    optimizer.step(loss)
    fitted = logits.detach()
    assert torch.softmax(fitted, 0).argmax() == 2 and shares.argmax() == 0
    undone = without_class_weights(fitted[None])[0]
    torch.testing.assert_close(torch.softmax(undone, 0), shares, atol=1e-4, rtol=0)


def test_the_last_bias_does_it_for_a_whole_network() -> None:
    network = UNet(3, UNetOptions(channels=2, depth=2, dropout=0.0, dropout_places=())).eval()
    picture = torch.rand(1, 3, 8, 8)
    expected = without_class_weights(network(picture))
    record = {"class_weights": WEIGHTS.tolist()}
    network.load_state_dict(adjust_head(network.state_dict(), record))
    torch.testing.assert_close(network(picture), expected)
