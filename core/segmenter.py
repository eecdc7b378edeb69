"""The seam between the stream and whatever computes: one frame in, its maps out, state inside."""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from core.classes import ClassList
from core.frame import Frame, Maps
from core.timing import StageClock


@dataclass(frozen=True)
class Method:
    """How the predictions of a segmenter come about, for reports."""

    mode: str
    """dnn, vq-dnn, bnn or vq-bnn."""
    samples: int
    """Passes per frame."""
    tau: float | None
    """Decay of the temporal mean in source frames; None: no temporal mean."""
    window: int | None
    """Previous frames in the mean; None: all of them."""
    temperature: float
    """What the logits are divided by; 1: not calibrated."""
    height: int
    """Pixels: the height the network works at."""
    width: int
    """Pixels: the width the network was trained at; a graph file works at this one."""
    motion: bool = False
    """Whether the temporal mean follows the motion between frames."""

    @property
    def calibrated(self) -> bool:
        """Whether a fitted temperature is applied."""
        return self.temperature != 1.0


class Segmenter(Protocol):
    """What torch, ONNX Runtime and OpenVINO executors look like to the rest; tests have a fake."""

    classes: ClassList
    method: Method
    executor: str
    """What really computes, for the report: `torch fp32`, `openvino 2026.4 bf16`, ..."""
    device: str
    """Where it really computes: `cpu`, `cuda`."""
    clock: StageClock
    resets: Counter[str]
    """How often the temporal state was started anew, by cause."""

    def step(self, frame: Frame) -> Maps:
        """Segments one frame; frames come in the order of their index."""
        ...

    def reset(self) -> None:
        """Forgets all earlier frames."""
        ...
