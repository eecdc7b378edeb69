"""What the page's controls decide: which network, how it looks, and what is degraded about that."""

from dataclasses import dataclass
from pathlib import Path

from app.open_model import open_model
from app.page_legend import escaped
from core.checkpoint import CheckpointMeta, read_meta
from core.device import choose_device
from core.segmenter import Segmenter
from seg.bundled import bundled_names, find_checkpoint
from seg.options import ModeName

MODES: tuple[tuple[str, ModeName], ...] = (
    ("one look (dnn)", "dnn"),
    ("steady (vq-dnn)", "vq-dnn"),
    ("many random looks (bnn)", "bnn"),
    ("steady random looks (vq-bnn)", "vq-bnn"),
)
FIRST_MODE: ModeName = "vq-dnn"
LOOKS, MOST_LOOKS = 10, 50
"""Published are 30 looks; 10 stay watchable on two cores."""


@dataclass(frozen=True)
class Settings:
    """The controls as one visitor has set them."""

    model: str
    mode: ModeName
    looks: int
    """Dropout passes per frame of bnn; the other modes take one."""

    def open_segmenter(self, *, keep_probs: bool = False) -> Segmenter:
        """A segmenter that nobody else uses, so that temporal states stay apart."""
        looks = self.looks if self.mode == "bnn" else None
        return open_model(self.model, mode=self.mode, samples=looks, keep_probs=keep_probs)[0]


def model_choices(model: str) -> list[tuple[str, str]]:
    """(shown name, value) of the bundled checkpoints and of the one that the page starts with."""
    names = bundled_names()
    return [(Path(name).name, name) for name in (names if model in names else [model, *names])]


def model_meta(model: str) -> CheckpointMeta:
    """The checkpoint's header. Raises InputError where there is no such checkpoint."""
    return read_meta(find_checkpoint(model))


def degraded(meta: CheckpointMeta) -> list[str]:
    """What is less than it could be, in words."""
    notes = []
    if not meta.calibration:
        notes.append("not calibrated: confidences are the network's own")
    if choose_device("auto").type == "cpu":
        notes.append("no GPU found: runs on the CPU")
    return notes


def notices(meta: CheckpointMeta) -> str:
    """`degraded` as HTML."""
    return " ".join(f"<span class='notice'>{escaped(note)}</span>" for note in degraded(meta))
