"""The training loop on tiny networks: schedules, accumulation, averages, decay, failures, resuming."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from made.trainings import CPU, made_parts
from torch import Tensor, nn

from steadyseg.core.dropout import Dropout
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.model.tensor_file import read_tensors
from steadyseg.core.seeds import mix_seed
from steadyseg.core.training.config import TrainConfig
from steadyseg.core.training.loop import EpochDone, StepDone, fit, train_step
from steadyseg.core.training.optimizer import learning_rate, make_optimizer
from steadyseg.core.training.parts import Run, fit_batch

VOID = 9


def config(**changes: Any) -> TrainConfig:
    base: dict[str, Any] = {
        "epochs": 2,
        "batch_size": 4,
        "precision": "fp32",
        "schedule": "constant",
        "learning_rate": 0.05,
        "clip_norm": 0.0,
        "average_decay": 0.0,
        "weight_decay": 0.0,
        "evaluate_every": 0,
        "optimizer": "sgd",
    }
    return TrainConfig(**(base | changes))


def pixels_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy summed over the pixels that count, and how many they are."""
    total = F.cross_entropy(logits, targets, ignore_index=VOID, reduction="sum")
    return total, (targets != VOID).sum()


def data(epoch: int, count: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """`count` batches of `size`, a function of the epoch; the share of void pixels differs from image to image."""
    generator = torch.Generator().manual_seed(epoch)
    images = torch.randn(count * size, 3, 6, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (count * size, 6, 5), generator=generator)
    for i in range(count * size):
        labels[i, : i % 5] = VOID
    for i in range(0, count * size, size):
        yield images[i : i + size], labels[i : i + size]


def plain(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 4, 1)).double()


def bayesian(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(6), Dropout(0.3), nn.Conv2d(6, 4, 3, padding=1)
    )


def train(
    network: nn.Module,
    settings: TrainConfig,
    run: Path,
    *,
    steps: int = 5,
    batches: Callable[[int], Iterator[tuple[Tensor, Tensor]]] | None = None,
    loss: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = pixels_loss,
    evaluate: Callable[[nn.Module], dict[str, float]] | None = None,
    resume: bool = False,
) -> Iterator[StepDone | EpochDone]:
    dtype = next(network.parameters()).dtype

    def made(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in data(epoch, steps * settings.accumulate, settings.batch_size):
            yield images.to(dtype), labels

    parts = made_parts(network, batches or made, loss, steps, evaluate=evaluate)
    return fit(parts, settings, Run(run, CPU, resume=resume))


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


def assert_equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_one_cycle_rises_linearly_and_falls_as_a_cosine_to_zero() -> None:
    settings = config(schedule="one-cycle", learning_rate=0.4, warmup=0.2)
    rates = [learning_rate(settings, step, 5, 20) for step in range(20)]
    fall = [0.4 * (1 + math.cos(math.pi * i / 16)) / 2 for i in range(16)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4, *fall], abs=1e-15)
    assert max(rates) == 0.4 and 0 < rates[-1] < 0.005


@pytest.mark.parametrize("warmup", [0.0, 0.3])
def test_a_triangle_rises_and_falls_linearly(warmup: float) -> None:
    settings = config(schedule="triangle", learning_rate=0.6, warmup=warmup)
    rates = [learning_rate(settings, step, 5, 10) for step in range(10)]
    expected = {
        0.0: [0.6, 0.54, 0.48, 0.42, 0.36, 0.3, 0.24, 0.18, 0.12, 0.06],
        0.3: [0.2, 0.4, 0.6, 0.6, *(0.6 * left / 7 for left in (6, 5, 4, 3, 2, 1))],
    }
    assert rates == pytest.approx(expected[warmup], abs=1e-15)


@pytest.mark.parametrize(("warmup", "total"), [(0.0, 1), (1.0, 1), (0.0, 7), (1.0, 7)])
def test_one_cycle_stays_between_zero_and_the_peak_at_its_limits(warmup: float, total: int) -> None:
    settings = config(schedule="one-cycle", learning_rate=1.0, warmup=warmup)
    rates = [learning_rate(settings, step, 1, total) for step in range(total)]
    assert all(0 < rate <= 1 for rate in rates) and max(rates) == 1.0


def test_the_step_schedule_rises_first_and_falls_at_every_one_of_its_epochs() -> None:
    settings = TrainConfig(
        epochs=8, schedule="step", learning_rate=1.0, warmup=0.25, step_epochs=(3, 5, 6), step_factor=0.5
    )
    rates = [learning_rate(settings, step, 2, 16) for step in range(16)]
    assert rates == pytest.approx(
        [0.25, 0.5, 0.75, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
    )


def test_the_loop_uses_the_schedule_step_by_step(tmp_path: Path) -> None:
    settings = config(schedule="one-cycle", epochs=2, warmup=0.3)
    network = plain()
    before, moved, rates = weights(network), [], []
    for event in train(network, settings, tmp_path):
        if isinstance(event, StepDone):
            now = weights(network)
            moved.append(float((now["0.weight"] - before["0.weight"]).norm()))
            before = now
            rates.append(event.learning_rate)
    assert rates == [learning_rate(settings, step, 5, 10) for step in range(10)]
    assert moved[2] > 2 * moved[0] and moved[-1] < moved[2] / 5  # sgd moves in proportion to the rate


def test_seeds_of_steps_are_many_and_the_same_everywhere() -> None:
    seeds = {mix_seed(seed, epoch, step) for seed in range(5) for epoch in range(20) for step in range(20)}
    assert len(seeds) == 2000 and all(0 <= seed < 2**63 for seed in seeds)
    assert mix_seed(1, 23) != mix_seed(12, 3)
    assert mix_seed(0, 1, 2) == mix_seed(0, 1, 2)


@pytest.mark.parametrize(
    ("size", "parts", "optimizer", "clip_norm"), [(2, 4, "sgd", 0.0), (4, 2, "adam", 0.0), (1, 8, "adamw", 0.01)]
)
def test_accumulated_parts_equal_one_bigger_batch(tmp_path, size, parts, optimizer, clip_norm):
    """Parts hold different numbers of void pixels, so a mean of means would differ."""
    whole, split = plain(), plain()
    settings = {"optimizer": optimizer, "clip_norm": clip_norm, "weight_decay": 0.01}
    first = list(train(whole, config(batch_size=8, **settings), tmp_path / "a"))
    second = list(train(split, config(batch_size=size, accumulate=parts, **settings), tmp_path / "b"))
    for name, tensor in weights(whole).items():
        torch.testing.assert_close(split.state_dict()[name], tensor, rtol=0, atol=1e-10)
    losses = [[e.loss for e in events if isinstance(e, StepDone)] for events in (first, second)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-10) and len(losses[0]) == 10


def test_the_first_sgd_step_is_the_gradient_of_the_mean_over_counting_pixels(tmp_path: Path) -> None:
    network, reference = plain(), plain()
    images, labels = next(data(0, 5, 4))
    logits = reference(images)
    picked = torch.log_softmax(logits, 1).permute(0, 2, 3, 1)[labels != VOID]
    mean = -picked[torch.arange(len(picked)), labels[labels != VOID]].mean()
    mean.backward()
    event = next(train(network, config(learning_rate=0.05), tmp_path))
    assert isinstance(event, StepDone) and event.loss == pytest.approx(mean.item(), abs=1e-12)
    for now, old in zip(network.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(now, old - 0.05 * old.grad, rtol=0, atol=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("fits_batch", "images", "size"), [(True, 75, 74), (True, 1, 1), (True, 96, 96), (True, 0, 96), (False, 75, 96)]
)
def test_a_batch_that_nobody_named_fits_the_images(fits_batch: bool, images: int, size: int) -> None:
    run, given = Run(Path(), CPU, fits_batch=fits_batch), config(batch_size=96)
    fitted, remarks = fit_batch(given, images, run)
    assert fitted == replace(given, batch_size=size) and len(remarks) == (size < 96)
    halved, _ = fit_batch(config(batch_size=96, accumulate=2), images, run)
    assert halved.batch_size == (36 if size == 74 else 96 if images < 2 or not fits_batch else 48)


def test_a_network_that_needs_two_pictures_says_so(tmp_path: Path) -> None:
    """Batch norm behind a global pooling, as in DeepLabV3+, ended in a traceback."""
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3), nn.Conv2d(3, 4, 1))
    with pytest.raises(InputError, match="--batch-size 2"):
        list(train(network, config(batch_size=1), tmp_path))


@pytest.mark.parametrize(("optimizer", "ahead"), [("sgd", 0.0), ("nesterov", 0.9)])
def test_momentum_steps_by_the_formula(optimizer: str, ahead: float) -> None:
    """v = 0.9 v + g; sgd moves by v, and nesterov by g + 0.9 v (Sutskever et al. 2013, as torch computes it)."""
    weight = nn.Parameter(torch.ones(1, 1, dtype=torch.float64))
    network = nn.Module()
    network.register_parameter("weight", weight)
    stepping = make_optimizer(network, config(optimizer=optimizer, learning_rate=0.1, weight_decay=0.0))
    expected, velocity = 1.0, 0.0
    for gradient in (1.0, -3.0, 0.5):
        weight.grad = torch.full_like(weight, gradient)
        stepping.step()
        velocity = 0.9 * velocity + gradient
        expected -= 0.1 * (gradient + ahead * velocity if ahead else velocity)
        assert weight.item() == pytest.approx(expected, abs=1e-12)


def test_a_batch_of_void_alone_changes_nothing(tmp_path: Path) -> None:
    network = plain()
    before = weights(network)

    def void_only(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        yield torch.randn(2, 3, 4, 4, dtype=torch.float64), torch.full((2, 4, 4), VOID)

    events = list(train(network, config(epochs=1), tmp_path, steps=1, batches=void_only))
    assert isinstance(events[0], StepDone) and events[0].loss == 0.0
    assert_equal(weights(network), before)


def test_the_gradient_is_clipped_to_its_norm(tmp_path: Path) -> None:
    moved = {}
    for clip in (0.0, 1e-3):
        network = plain()
        before = weights(network)
        next(train(network, config(clip_norm=clip, learning_rate=1.0), tmp_path / str(clip)))
        moved[clip] = math.sqrt(sum(float((t - before[n]).pow(2).sum()) for n, t in weights(network).items()))
    assert moved[1e-3] == pytest.approx(1e-3, rel=1e-3) and moved[0.0] > 1e-2


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_weight_decay_spares_biases_and_normalisation(tmp_path: Path, optimizer: str) -> None:
    """The loss has no gradient, so whatever moves is moved by the decay."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Conv2d(6, 4, 1)).double()
    nn.init.uniform_(network[1].weight, 0.5, 1.5)  # type: ignore[arg-type]
    nn.init.uniform_(network[1].bias, 0.5, 1.5)  # type: ignore[arg-type]
    before = weights(network)
    settings = config(optimizer=optimizer, weight_decay=0.1, learning_rate=0.01, epochs=1)
    list(train(network, settings, tmp_path, loss=lambda logits, targets: (logits.sum() * 0, targets.sum())))
    now = weights(network)
    for name in ("0.bias", "1.weight", "1.bias", "2.bias"):
        assert torch.equal(now[name], before[name]), name
    for name in ("0.weight", "2.weight"):
        assert now[name].norm() < before[name].norm(), name
        if optimizer == "adamw":
            torch.testing.assert_close(now[name], before[name] * (1 - 0.01 * 0.1) ** 5, rtol=1e-12, atol=0)


@pytest.mark.parametrize("decay", [0.998, 0.3])
def test_the_kept_weights_are_the_warmed_up_moving_average(tmp_path: Path, decay: float) -> None:
    network = plain()
    history = []
    events = train(network, config(average_decay=decay, epochs=3), tmp_path)
    for event in events:
        if isinstance(event, StepDone):
            history.append(weights(network))
    average = history[0]
    for count, current in enumerate(history[1:], start=1):
        now = min(decay, (1 + count) / (10 + count))
        average = {name: now * average[name] + (1 - now) * current[name] for name in current}
    for name, tensor in average.items():
        torch.testing.assert_close(network.state_dict()[name], tensor, rtol=0, atol=1e-12)
    assert (network.state_dict()["0.weight"] - history[-1]["0.weight"]).abs().max() > 1e-4


def test_running_statistics_are_averaged_too_and_the_network_is_left_in_eval(tmp_path: Path) -> None:
    network = bayesian()
    for event in train(network, config(average_decay=0.9), tmp_path):
        if isinstance(event, StepDone):
            last = weights(network)
    now = weights(network)
    assert (now["2.running_mean"] - last["2.running_mean"]).abs().max() > 0
    assert now["2.num_batches_tracked"] == 10 and not network.training


def test_the_mask_of_an_attention_stays_infinite(tmp_path: Path) -> None:
    """The mean of two infinities is NaN, and one NaN in a mask makes every probability NaN."""
    network = plain()
    mask = torch.tensor([0.0, -torch.inf]).double()
    network[0].register_buffer("mask", mask.clone(), persistent=False)
    found: list[Tensor] = []

    def evaluate(averaged: nn.Module) -> dict[str, float]:
        found.append(averaged.get_buffer("0.mask").clone())
        return {}

    list(train(network, config(epochs=2, average_decay=0.9, evaluate_every=1), tmp_path, evaluate=evaluate))
    assert len(found) == 2 and all(torch.equal(one, mask) for one in found)


def test_evaluation_sees_the_averaged_weights_when_it_is_due(tmp_path: Path) -> None:
    seen: list[bool] = []

    def evaluate(network: nn.Module) -> dict[str, float]:
        seen.append(network.training)
        return {"norm": float(network.state_dict()["0.weight"].norm())}

    network = plain()
    events = list(train(network, config(epochs=5, average_decay=0.9, evaluate_every=2), tmp_path, evaluate=evaluate))
    epochs = [event for event in events if isinstance(event, EpochDone)]
    assert [bool(event.metrics) for event in epochs] == [False, True, False, True, True]  # and after the last one
    assert epochs[-1].metrics["norm"] == pytest.approx(float(network.state_dict()["0.weight"].norm()))
    assert seen == [False] * 3


def test_a_non_finite_loss_stops_with_its_step_and_keeps_the_last_state(tmp_path: Path) -> None:
    def poisoned(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        for i, (images, labels) in enumerate(data(epoch, 5, 4)):
            yield (images * math.nan if epoch == 1 and i == 3 else images), labels

    network, epochs, after_epoch = plain(), 0, b""
    with pytest.raises(CheckFailed, match="epoch 2, step 9") as caught:
        for event in train(network, config(epochs=3, clip_norm=1.0), tmp_path, batches=poisoned):
            if isinstance(event, EpochDone):
                epochs, after_epoch = epochs + 1, (tmp_path / "state.safetensors").read_bytes()
    assert epochs == 1 and len(str(caught.value).splitlines()) == 1
    assert (tmp_path / "state.safetensors").read_bytes() == after_epoch
    assert all(tensor.isfinite().all() for tensor in network.state_dict().values())


def test_a_non_finite_gradient_of_a_finite_loss_stops_too(tmp_path: Path) -> None:
    """sqrt has slope infinity at 0: a step would make every weight NaN, and the epoch's end would keep them."""

    def rooted(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return (logits - logits.detach()).abs().sqrt().sum(), (targets != VOID).sum()

    network = plain()
    with pytest.raises(CheckFailed, match="step 1"):
        list(train(network, config(), tmp_path, steps=1, loss=rooted))
    assert all(tensor.isfinite().all() for tensor in network.state_dict().values())
    assert not (tmp_path / "state.safetensors").exists()


@pytest.mark.parametrize(
    ("optimizer", "precision", "stop"), [("sgd", "fp32", "after epoch 2"), ("adamw", "fp16", "inside epoch 3")]
)
def test_a_resumed_training_ends_bit_for_bit_where_an_uninterrupted_one_does(tmp_path, optimizer, precision, stop):
    """In fp16 the first epoch lowers the scale, which the resumed training must begin with."""
    settings = config(
        optimizer=optimizer,
        precision=precision,
        epochs=4,
        schedule="one-cycle",
        average_decay=0.9,
        clip_norm=1.0,
        weight_decay=0.01,
        accumulate=2,
        learning_rate=0.01,
    )

    def steep(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        total, weight = pixels_loss(logits, targets)
        return 1000 * total, weight

    whole = bayesian()
    list(train(whole, settings, tmp_path / "whole", loss=steep))
    events = train(bayesian(), settings, tmp_path / "part", loss=steep)
    for event in events:
        if stop == "after epoch 2" and isinstance(event, EpochDone) and event.epoch == 2:
            break
        if stop == "inside epoch 3" and isinstance(event, StepDone) and event.step == 13:
            break
    events.close()  # type: ignore[attr-defined]
    resumed = bayesian(seed=99)  # every weight comes from the state
    rest = list(train(resumed, settings, tmp_path / "part", loss=steep, resume=True))
    assert [event.epoch for event in rest if isinstance(event, EpochDone)] == [3, 4]
    assert isinstance(rest[0], StepDone) and rest[0].step == 11
    assert_equal(weights(resumed), weights(whole))
    final = [read_tensors(tmp_path / name / "state.safetensors") for name in ("whole", "part")]
    assert_equal(final[0][0], final[1][0])
    assert precision == "fp32" or 1 < final[0][0]["scaler.scale"] < 2.0**16
    assert json.loads(final[0][1]) == json.loads(final[1][1]) == {"epochs_done": 4, "data": ""}


def test_resuming_before_the_first_epoch_was_done_starts_from_the_beginning(tmp_path: Path) -> None:
    first, second = bayesian(), bayesian()
    list(train(first, config(), tmp_path / "a"))
    list(train(second, config(), tmp_path / "b", resume=True))
    assert_equal(weights(first), weights(second))


def test_resuming_a_finished_training_does_nothing_and_returns_its_weights(tmp_path: Path) -> None:
    first, second = bayesian(), bayesian(seed=5)
    list(train(first, config(average_decay=0.9), tmp_path))
    assert list(train(second, config(average_decay=0.9), tmp_path, resume=True)) == []
    assert_equal(weights(first), weights(second))


@pytest.mark.parametrize("damage", ["cut", "other network", "junk"])
def test_a_state_that_does_not_fit_is_refused(tmp_path: Path, damage: str) -> None:
    list(train(bayesian(), config(), tmp_path))
    state = tmp_path / "state.safetensors"
    if damage == "cut":
        state.write_bytes(state.read_bytes()[:-10])
    if damage == "junk":
        state.write_bytes(b"junk")
    with pytest.raises(InputError) as caught:
        next(train(plain() if damage == "other network" else bayesian(), config(), tmp_path, resume=True))
    assert len(str(caught.value).splitlines()) == 1 and str(state) in str(caught.value)


def test_dropout_masks_depend_on_the_step_and_not_on_what_was_drawn_before(tmp_path: Path) -> None:
    def with_draws(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in data(epoch, 5, 4):
            torch.rand(17)
            yield images.float(), labels

    first, second = bayesian(), bayesian()
    list(train(first, config(), tmp_path / "a"))
    list(train(second, config(), tmp_path / "b", batches=with_draws))
    assert_equal(weights(first), weights(second))


def test_training_in_16_bits_learns_and_keeps_single_precision_weights(tmp_path: Path) -> None:
    def learnable(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        for images, _ in data(epoch, 20, 4):
            yield images.float(), images.argmax(1)

    network = bayesian()
    events = list(train(network, config(precision="bf16"), tmp_path, steps=20, batches=learnable))
    epochs = [event.loss for event in events if isinstance(event, EpochDone)]
    assert epochs[1] < 0.9 * epochs[0] and network[0].weight.dtype == torch.float32


def one_fp16_step(scale: float, factor: float = 1.0) -> tuple[float, float, nn.Module]:
    """(loss, scale afterwards, network) of a step whose loss is `factor` times the cross-entropy."""
    network, run = bayesian().train(), Run(Path(), CPU)
    settings = config(precision="fp16")
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    batches = [(images.float(), labels) for images, labels in data(0, 2, 4)]
    torch.manual_seed(0)

    def loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        total, weight = pixels_loss(logits, targets)
        return factor * total, weight

    value = train_step(network, batches, loss, make_optimizer(network, settings), scaler, settings, run)
    return value, scaler.get_scale(), network


def test_a_gradient_that_overflows_in_fp16_skips_its_step_and_halves_the_scale() -> None:
    start = dict(bayesian().named_parameters())
    value, scale, skipped = one_fp16_step(2.0**40)
    assert scale == 2.0**39 and math.isfinite(value)
    assert all(torch.equal(now, start[name]) for name, now in skipped.named_parameters())
    same, scale, moved = one_fp16_step(2.0**10)
    assert scale == 2.0**10 and same == value  # the loss is reported without its scale
    _, _, reference = one_fp16_step(2.0**4)
    for name, now in moved.named_parameters():
        assert not torch.equal(now, start[name]), name
        torch.testing.assert_close(now, reference.get_parameter(name), rtol=0, atol=1e-4)


def test_a_gradient_that_overflows_in_fp16_without_a_scale_is_not_finite() -> None:
    value, _, network = one_fp16_step(1.0, factor=1e9)
    assert math.isnan(value) and all(tensor.isfinite().all() for tensor in network.state_dict().values())


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / ".state.safetensors.abc123"
    leftover.write_bytes(b"half")
    list(train(plain(), config(), tmp_path, resume=True))
    assert not leftover.exists()
