"""The seam between the stream and whatever computes: one frame in, its maps out, state inside."""

from collections import Counter
from typing import Protocol

from core.classes import ClassList
from core.frame import Frame, Maps
from core.timing import StageClock


class Segmenter(Protocol):
    """What torch, ONNX Runtime and OpenVINO executors look like to the rest; tests have a fake."""

    classes: ClassList
    executor: str
    """What really computes, for the report: `torch`, `onnxruntime`, ..."""
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
