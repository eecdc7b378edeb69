"""The program of docs/usage.md that tells a graph file the motion: ONNX Runtime and OpenCV alone do what `video`
does."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from made.graphs import HEIGHT, WIDTH, Graphs
from made.methods import opened
from refusals import one_line_error

from core.frame import Frame
from seg.street.drive import Street

pytestmark = pytest.mark.slow

USAGE = Path(__file__).parents[2] / "docs" / "usage.md"


@pytest.mark.parametrize("scale", [1, 2])
def test_the_client_in_the_guide_gives_the_products_labels(graphs: Graphs, tmp_path: Path, scale: int) -> None:
    film, file = tmp_path / "film.avi", graphs("motion")
    stream = list(Street(seed=3, height=scale * HEIGHT, width=scale * WIDTH).frames(8))
    writer = cv2.VideoWriter(str(film), cv2.VideoWriter_fourcc(*"FFV1"), 25, (scale * WIDTH, scale * HEIGHT))
    for frame in stream:
        writer.write(np.ascontiguousarray(frame.image[..., ::-1]))
    writer.release()
    program = next(code for code in re.findall(r"```python\n(.*?)```", USAGE.read_text(), re.S) if "dis.calc" in code)
    program = re.sub(r"    print\(.*\n", "    seen.append(outputs)\n", program)
    program = program.replace("street-motion.onnx", str(file)).replace("drive.mp4", str(film))
    seen: list[dict[str, np.ndarray]] = []
    exec(program, {"seen": seen})
    segmenter = opened("street-tiny", executor="torch", size=HEIGHT)  # the default rule
    assert segmenter.method.motion and len(seen) == len(stream)
    still = opened("street-tiny", executor="torch", size=HEIGHT, motion=False, tau=segmenter.method.tau)
    apart = []
    for number, (frame, outputs) in enumerate(zip(stream, seen, strict=True)):
        given = Frame(frame.image, number, number / 25)
        label = segmenter.step(given).label
        assert (outputs["label"][0] == label).mean() > 0.998
        apart.append((still.step(given).label == label).mean())
    assert min(apart) < 0.99  # without motion the labels are others


def test_what_has_no_mean_follows_no_motion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", "street-tiny", "-o", tmp_path / "x.onnx", "--motion", "on"]
    assert "add --stateful" in one_line_error(capsys, *command)
    assert "which has no memory" in one_line_error(capsys, *command, "--stateful", "--mode", "dnn")
