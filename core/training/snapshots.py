"""Checkpoints kept on a training's way, as many as asked for at evenly spaced epochs: what its trajectory is drawn
from."""

from pathlib import Path

from core.errors import InputError

FOLDER = "checkpoints"


def kept_epochs(epochs: int, count: int) -> list[int]:
    """Of a training of so many epochs: 0, the initial weights, and then evenly on; the last weights are the model
    itself."""
    return sorted({place * epochs // count for place in range(count)}) if count else []


def kept_file(run: Path, epochs_done: int) -> Path:
    return run / FOLDER / f"epoch-{epochs_done:04d}.safetensors"


def kept_checkpoints(run: Path) -> list[Path]:
    """The files of a run's folder, oldest first; InputError where it kept fewer than two."""
    if not run.is_dir():
        raise InputError(f"{run}: no such folder; give the --run folder of a training")
    files = sorted((run / FOLDER).glob("epoch-*.safetensors"))
    if len(files) < 2:
        raise InputError(
            f"{run}: kept {len(files)} checkpoints on its way and a trajectory needs two or more; train with "
            "--keep-checkpoints 10"
        )
    return files
