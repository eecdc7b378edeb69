"""The rows of the bench: what each of them runs."""

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from steadyseg.core.errors import InputError
from steadyseg.core.method import mode_title
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.networks import FrameNetwork
from steadyseg.studies.performance.backends import Backend, TorchBackend
from steadyseg.studies.performance.baselines import NaiveDeque, Published
from steadyseg.studies.performance.clip import Clip
from steadyseg.studies.performance.timing import Row
from steadyseg.studies.performance.variants import Variant

Item = TypeVar("Item")
FIRST_MAPS = """
import sys
import numpy as np
from steadyseg import Frame, open_segmenter
model, backend, precision, *size = sys.argv[1:]
height, width, working = map(int, size)
segmenter = open_segmenter(model, size=working, backend=backend, precision=precision)
segmenter.step(Frame(np.zeros((height, width, 3), np.uint8), 0, 0.0))
"""
PASSES = (5, 10, 30, 50)
ROUND = 12
"""Frames of one timed call where the network runs on some of them alone."""

ROWS: dict[str, str] = {
    "bare_plain": "network alone, without spatial smoothing",
    "bare": "network alone, with spatial smoothing",
    "dnn": f"{mode_title('dnn')}: one pass, all maps, familiarity where it is known",
    "vq_dnn": f"{mode_title('vq-dnn')}: one pass, all maps, familiarity where it is known",
    "vq_dnn_motion": "the same, the mean following motion",
    **{f"every_{n}": f"the same, the network on every {n}nd frame".replace("3nd", "3rd") for n in (2, 3)},
    "every_auto": "the same, the network where the picture asks for it",
    "vq_bnn": f"{mode_title('vq-bnn')}: one dropout pass, all maps",
    **{f"mc_{n}": f"{mode_title(f'bnn x{n}')}: whole passes, all maps" for n in PASSES},
    "mc_whole_5": "MC dropout in torch: 5 whole passes, all maps",
    **{f"mc_reuse_{n}": f"MC dropout in torch: {n} passes that share their prefix" for n in PASSES},
    "naive_deque": "one pass, deque of 6 softmax maps, plain torch",
    "published": "the network again on 6 frames with dropout, mean",
    "end_to_end_labels": "H.264 file to the maps of vq_dnn",
    "end_to_end_video": "H.264 file to an H.264 file side by side",
    "start": "a new process to the first maps, imports included",
}
SINGLE_PROCESS: dict[str, Variant] = {"bare_plain": "plain", "bare": "quiet"}
"""The rows that are a network alone."""
GRAPH_ROWS = ("bare", "step", "end_to_end_labels", "end_to_end_video")
"""Rows of a graph file: it holds one mode."""
STEP = "the file's whole step: its mode, all maps"
DROPOUT_ROWS = ("vq_bnn", "published", *(name for name in ROWS if name.startswith("mc_")))


class CheckpointRows:
    """Rows of a checkpoint in one backend, built when they are asked for."""

    def __init__(
        self,
        backend: Backend,
        torch: Callable[[], TorchBackend],
        clip: Clip,
        size: tuple[int, int],
        folder: Path,
        model: str,
        height: int,
    ) -> None:
        self._backend, self._torch, self._clip, self._size, self._folder = backend, torch, clip, size, folder
        self._model, self._height = model, height
        self.naive: NaiveDeque | None = None
        """Made by the row of that name; its memory is compared with ours."""

    def build(self, name: str) -> Row:
        """A row of `ROWS`."""
        backend = self._backend
        if name in SINGLE_PROCESS:
            return Row(name, repeat(backend.logits(SINGLE_PROCESS[name]), self._pictures()), backend.name)
        if name == "naive_deque":
            self.naive = NaiveDeque(backend.logits("quiet"), self._size)
            return Row(name, repeat(self.naive, self._pictures()), backend.name)
        if name == "published":
            return Row(name, repeat(Published(backend.logits("drawing")), self._pictures()), backend.name)
        if name == "start":
            words = [self._model, backend.name.split()[0], backend.precision, *map(str, (*self._size, self._height))]
            return Row(name, functools.partial(start, words), backend.name)
        if name.startswith("end_to_end"):
            return clip_row(name, self.segmenter("vq_dnn"), self._clip, self._folder)
        segmenter = self.segmenter(name)
        frames = ROUND if name.startswith("every_") else 1
        return Row(
            name, repeat(segmenter.step, self._clip.drive(self._size)), segmenter.backend, frames, segmenter.clock
        )

    def segmenter(self, name: str) -> Segmenter:
        """The whole step of a row that is one."""
        kind, _, passes = name.rpartition("_")
        if kind == "every":
            return self._backend.segmenter("vq-dnn", motion=True, every="auto" if passes == "auto" else int(passes))
        if kind == "mc":
            return self._backend.segmenter("bnn", int(passes))
        if kind == "mc_whole":
            return self._torch().segmenter("bnn", int(passes))
        if kind == "mc_reuse":
            return self._torch().segmenter("bnn", int(passes), shares_prefix=True)
        if name == "vq_dnn_motion":
            return self._backend.segmenter("vq-dnn", motion=True)
        modes = {"dnn": "dnn", "vq_dnn": "vq-dnn", "vq_bnn": "vq-bnn"}
        return self._backend.segmenter(modes[name])  # type: ignore[arg-type]

    def _pictures(self) -> Iterator[np.ndarray]:
        return (frame.image[None] for frame in self._clip.drive(self._size))


def graph_row(
    name: str, segmenter: Segmenter, network: FrameNetwork | None, clip: Clip, size: tuple[int, int], folder: Path
) -> Row:
    """A row of `GRAPH_ROWS`."""
    if name == "bare":
        if network is None:
            raise InputError("only a file of one pass a frame has a network alone, timed on the CPU; omit `bare`")
        pictures = (frame.image[None] for frame in clip.drive(size))
        return Row(name, repeat(network, pictures), network.backend)
    if name == "step":
        return Row(name, repeat(segmenter.step, clip.drive(size)), segmenter.backend, clock=segmenter.clock)
    return clip_row(name, segmenter, clip, folder)


def clip_row(name: str, segmenter: Segmenter, clip: Clip, folder: Path) -> Row:
    """One timed call is the whole clip, opening and closing included."""
    if name == "end_to_end_labels":
        return Row(name, functools.partial(clip.to_labels, segmenter), segmenter.backend, clip.frames)
    output = folder / "bench.mp4"
    return Row(name, lambda n: clip.to_video(segmenter, n, output), segmenter.backend, clip.frames)


def start(words: list[str], count: int) -> None:
    """Starts so many processes one after the other. Each opens the network and computes the maps of one frame."""
    for _ in range(count):
        subprocess.run([sys.executable, "-c", FIRST_MAPS, *words], check=True, capture_output=True)


def repeat(step: Callable[[Item], object], stream: Iterator[Item]) -> Callable[[int], object]:
    """n -> the step on the next n of an endless stream."""

    def run(count: int) -> None:
        for _ in range(count):
            step(next(stream))

    return run


def chosen_rows(asked: tuple[str, ...], known: tuple[str, ...], missing: dict[str, str]) -> list[str]:
    """The rows to run in their usual order; InputError for unknown ones and for those in `missing`, with its reason."""
    for name in asked:
        if name not in known:
            raise InputError(f"unknown row {name!r}; choose from {', '.join(known)}")
        if name in missing:
            raise InputError(f"row {name} cannot be run: {missing[name]}")
    return [name for name in known if (name in asked if asked else name not in missing)]
