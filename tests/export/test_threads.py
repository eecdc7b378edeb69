"""Networks that are opened and first stepped in several threads at once; nobody outside holds a lock."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from steadyseg.app.open_model import open_segmenter
from steadyseg.core.frame import Frame
from steadyseg.core.method import MethodOptions
from steadyseg.core.segmenter import Segmenter

pytest.importorskip("openvino")
pytest.importorskip("numba")
PICTURE = np.random.default_rng(0).integers(0, 255, (90, 120, 3), np.uint8).repeat(2, 0).repeat(2, 1)


def opened(executor: str, size: int) -> Segmenter:
    return open_segmenter("street-tiny", MethodOptions(mode="dnn"), executor=executor, precision="fp32", size=size)


def labels(segmenter: Segmenter) -> np.ndarray:
    segmenter.reset()
    return segmenter.step(Frame(PICTURE, 0, 0.0)).label


@pytest.mark.long
def test_models_are_first_stepped_in_threads_beside_others_that_run() -> None:
    """Two models are traced; meanwhile torch opens and runs a model over and over, and a compiled model goes on."""
    expected, compiled = labels(opened("torch", 160)), opened("openvino", 160)
    before = labels(compiled)
    traced: list[np.ndarray] = []
    wrong: list[object] = []

    def trace() -> None:
        traced.append(labels(opened("openvino", 96)))

    def run(step: Callable[[], np.ndarray], right: np.ndarray) -> Callable[[], None]:
        def repeat() -> None:
            while len(traced) < 2 and not wrong:
                if (step() != right).any():
                    wrong.append("other labels")
                time.sleep(0.03)  # the tracing threads want the interpreter too

        return repeat

    def caught(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                wrong.append(error)

        return run

    jobs = [trace, trace, run(lambda: labels(opened("torch", 160)), expected), run(lambda: labels(compiled), before)]
    threads = [threading.Thread(target=caught(job)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert (traced[0] == traced[1]).all() and (traced[0] == labels(opened("torch", 96))).mean() > 0.999
