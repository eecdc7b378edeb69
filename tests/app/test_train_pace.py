"""How long a training will take, said after its first steps."""

from steadyseg.app.train.command import TimeEstimate
from steadyseg.core.training.loop import StepDone


def test_the_estimate_is_of_the_steps_that_are_left_at_the_pace_of_the_later_first_ones() -> None:
    """A slow start, then 2 s a step; resumed at step 500 of 7,700: 7,187 steps are left after the 13th."""
    pace, now, told = TimeEstimate(100), 0.0, []
    for number in range(40):
        now += 30.0 if number < 3 else 2.0
        told.append(pace.after(StepDone(6, 501 + number, 7700, 1.0, 1e-3, 2.0), now))
    assert [number for number, line in enumerate(told) if line] == [12]
    assert told[12].startswith("about 4.0 hours to the end, epoch 100, at this pace")
    assert TimeEstimate(2).after(StepDone(1, 1, 20, 1.0, 1e-3, 2.0), 0.0) == ""


def test_steps_that_take_longer_later_are_counted_so() -> None:
    """Of 10 epochs of 100 steps, a step takes 2 s in the first eight and 6 s after. After 13 steps, 787 of 2 s and 200
    of 6 s are left; after 13 steps of the ninth epoch, 187 of 6 s."""
    for epoch, step_s, minutes in ((1, 2.0, (2 * 787 + 6 * 200) / 60), (9, 6.0, 6 * 187 / 60)):
        pace, first = TimeEstimate(10, lambda epoch: 3.0 if epoch >= 8 else 1.0), 100 * (epoch - 1) + 1
        told = [pace.after(StepDone(epoch, first + n, 1000, 1.0, 1e-3, 2.0), step_s * n) for n in range(13)]
        assert told[-1].startswith(f"about {minutes:.0f} minutes")
