"""The clients of deploy/clients against `steadyseg video` on the same decoded pictures.

The client in C++ is compiled here where g++ and CMake are.
"""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from made.graphs import HEIGHT, WIDTH, Graphs
from made.methods import opened
from made.waiting import PATIENCE_S

from steadyseg.core.expected import LOST_A_FRAME
from steadyseg.core.frame import Frame
from steadyseg.core.motion import Motion, MotionEstimator
from steadyseg.runtime import every
from steadyseg.runtime.kernels.carried import LOSS
from steadyseg.street.drive import Street

pytestmark = pytest.mark.usefixtures("checked_here")
Command = list[str]
CLIENTS = Path(__file__).parents[2] / "deploy" / "clients"
PYTHON = [sys.executable, str(CLIENTS / "python" / "steadyseg_client.py")]
COUNT = 8
EQUAL, EQUAL_WITH_MOTION = 0.999, 0.995
"""Smallest share of equal labels; the flow of other versions of OpenCV differs."""


def draw(folder: Path, scale: int) -> Path:
    """Fills a folder with PNGs of so many times the network's size."""
    folder.mkdir(exist_ok=True)
    for number, frame in enumerate(Street(seed=3, height=scale * HEIGHT, width=scale * WIDTH).frames(COUNT)):
        cv2.imwrite(str(folder / f"{number:05}.png"), frame.image[..., ::-1])
    return folder


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNGs of the network's size: OpenVINO would resize others otherwise than ONNX Runtime."""
    return draw(tmp_path_factory.mktemp("pictures"), 1)


def decoded(pictures: Path) -> list[np.ndarray]:
    return [np.ascontiguousarray(cv2.imread(str(path))[..., ::-1]) for path in sorted(pictures.iterdir())]


def expected(model: Path, pictures: Path) -> list[np.ndarray]:
    """The labels of `steadyseg video` with this file."""
    segmenter = opened(model, backend="onnxruntime", precision="fp32", device="cpu")
    return [segmenter.step(Frame(image, i, i / 25)).label.copy() for i, image in enumerate(decoded(pictures))]


def ran(command: Command, **options: object) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, env=environment, **options)  # type: ignore[call-overload]


def by_python(model: Path, pictures: Path, output: Path) -> list[np.ndarray]:
    done = ran([*PYTHON, str(model), str(pictures / "%05d.png"), "-o", str(output)])
    assert done.returncode == 0, done.stderr
    assert b"0: " in done.stdout and b"mean uncertainty" in done.stdout
    assert len(list(output.glob("*.jpg"))) == COUNT
    return [cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in sorted(output.glob("*.png"))]


def by_raw_frames(client: Command, model: Path, pictures: Path) -> list[np.ndarray]:
    """A client that reads raw RGB from its input and writes labels."""
    done = ran([*client, str(model)], input=b"".join(image.tobytes() for image in decoded(pictures)))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"mean uncertainty") == COUNT
    return list(np.frombuffer(done.stdout, np.uint8).reshape(COUNT, HEIGHT, WIDTH))


def share(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    assert len(one) == len(other) == COUNT
    return min(float((a == b).mean()) for a, b in zip(one, other, strict=True))


def faults(done: "subprocess.CompletedProcess[bytes]", words: str) -> str:
    """What a refusal lacks: exit code 2 and one line, which has these words."""
    lines = done.stderr.decode(errors="replace").splitlines()
    refused = done.returncode == 2 and not done.stdout and len(lines) == 1 and words in lines[0]
    return "" if refused else f"expected {words!r}, got {done.returncode} {done.stdout[:80]!r} {done.stderr[-300:]!r}"


HOSTILE: list[tuple[str, str | Callable[[str], str], str]] = [
    ("input_height", "null", "input_height"),
    ("input_height", "97", "graph"),
    ("input_height", "16384", "graph"),
    ("input_width", "4000000000", "input_width"),
    ("head_stride", "0", "head_stride"),
    ("head_stride", "2", "graph"),
    ("motion", "false", "graph"),
    ("motion", "7", "motion"),
    ("classes", "null", "classes"),
    ("classes", '["a"]', "classes"),
    ("classes", lambda text: text.replace("Sky", "Road"), "classes"),
    ("classes", lambda text: text.replace("Sky", "\x7f"), "classes"),
    ("classes", '["Sky\\', "classes"),
]
"""Entry, its new text or the change of it, and the part that is malformed."""


def hostile(graphs: Graphs, path: Path) -> Iterator[tuple[str, str]]:
    """Writes each case to the path: yields the case and its part."""
    for key, change, part in HOSTILE:
        model = onnx.load(graphs("motion"))
        (entry,) = (one for one in model.metadata_props if one.key == key)
        entry.value = change if isinstance(change, str) else change(entry.value)
        onnx.save(model, path)
        yield f"{key} {entry.value[:200]!r}", part


def refuses_hostile(client: Command, graphs: Graphs, tmp_path: Path, *source: str) -> None:
    """Values that would read past an end, divide by zero or compute for ever; `source`: words after the file."""
    path, found = tmp_path / "hostile.onnx", []
    for what, part in hostile(graphs, path):
        if fault := faults(ran([*client, str(path), *source], input=b""), f"malformed {part} ("):
            found.append(f"{what}: {fault}")
    path.write_bytes(path.read_bytes()[:10_000])
    found.append(faults(ran([*client, str(path), *source], input=b""), "steadyseg_client: "))
    found.append(faults(ran([*client, str(graphs("logits")), *source], input=b""), "no stream"))
    assert not any(found), "\n".join(found)


def limited(client: Command) -> Command:
    """The command with 12 GB of addresses: a client without bounds would take all memory of the machine."""
    return ["sh", "-c", 'ulimit -v 12000000; exec "$@"', "sh", *client]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scale", "bound"),
    [("vq-dnn", 1, EQUAL), ("motion", 1, EQUAL_WITH_MOTION), ("motion", 2, EQUAL_WITH_MOTION)],
)
def test_python_is_video(graphs: Graphs, tmp_path: Path, name: str, scale: int, bound: float) -> None:
    """Frames of another size are resized by the file itself, in float."""
    pictures = draw(tmp_path / "in", scale)
    assert share(by_python(graphs(name), pictures, tmp_path / "out"), expected(graphs(name), pictures)) >= bound


@pytest.mark.slow
def test_python_says_what_it_could_not_read(graphs: Graphs, tmp_path: Path) -> None:
    """An earlier client lost frames, printed nothing about them and exited with 0."""
    command = [*PYTHON, str(graphs("vq-dnn")), str(draw(tmp_path, 1) / "%05d.png")]
    for number, code, words in ((3, 0, b"8 frames, and 3 were decoded"), (0, 2, b"no frame that OpenCV decodes")):
        (tmp_path / f"{number:05}.png").write_bytes(b"")
        done = ran(command)
        assert done.returncode == code and words in done.stderr.splitlines()[-1], done


@pytest.mark.slow
@pytest.mark.parametrize("name", ["motion", "dnn"])
def test_python_carries_maps_as_video_does(graphs, pictures, monkeypatch, name):
    """The client warps finished maps, and the product probabilities: labels differ on edges."""
    monkeypatch.syspath_prepend(CLIENTS / "python")
    client = importlib.import_module("steadyseg_every").EveryClient(graphs(name), every=3)
    segmenter = opened(graphs(name), every=3, backend="onnxruntime", precision="fp32", device="cpu", keep_probs=True)
    for number, image in enumerate(decoded(pictures)):
        theirs, ours = client.step(image, min(number, 1)), segmenter.step(Frame(image, number, number / 25))
        assert (client.calls, client.frames) == (segmenter.network_frames, number + 1)
        assert (theirs["label"] == ours.label).mean() > (EQUAL_WITH_MOTION if ours.network else 0.97)
        for shade in ("confidence", "entropy", "disagreement"):
            assert np.abs(theirs[shade].astype(int) - getattr(ours, shade)).mean() < (0.5 if ours.network else 2)
        if "probs" in theirs:
            assert ours.probs is not None
            np.testing.assert_allclose(theirs["probs"], ours.probs, atol=1e-3)
        if "expected_accuracy" in theirs:
            assert theirs["expected_accuracy"][0] == pytest.approx(ours.expected_accuracy, abs=1e-3)
    assert client.calls == 3


@pytest.mark.slow
def test_the_python_client_runs_the_network_on_some_frames_alone(graphs: Graphs, pictures: Path) -> None:
    command, source = [*PYTHON, str(graphs("motion"))], [str(pictures / "%05d.png"), "--every"]
    done = ran([*command, *source, "4"])
    assert done.returncode == 0 and b"the network ran on 2 of 8 frames" in done.stderr, done
    assert not faults(ran([*command, *source, "often"]), "--every must be a whole number, 1 to 30, or auto, got often")
    assert not faults(ran([*PYTHON, str(graphs("vq-dnn")), *source, "4"]), "follows no motion")


def test_the_python_client_has_the_constants_and_motions_of_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CLIENTS / "python")
    theirs = importlib.import_module("steadyseg_every")
    for name in ("MOST", "AUTO_MOST", "AUTO_DOUBT", "CHANGED_DOUBT"):
        assert getattr(theirs, name) == getattr(every, name)
    assert (theirs.LOSS, theirs.LOST_A_FRAME) == (LOSS, LOST_A_FRAME)
    estimate, first = MotionEstimator(), None
    for number, frame in enumerate(Street(seed=3, height=96, width=128).frames(4)):
        motion = estimate(frame.image, (48, 64), number)
        if motion is None:
            continue
        inside = every.inside(motion.source)
        then = {"motion": motion.source[None], "trust": motion.trust[None]}
        ours = every.compose(first, Motion(motion.source, motion.trust * inside))
        found = theirs.compose(first and {"motion": first.source[None], "trust": first.trust[None]}, then)
        np.testing.assert_allclose(found["motion"][0], ours.source, atol=1e-6)
        np.testing.assert_allclose(found["trust"][0], ours.trust, atol=1e-6)
        first = ours


@pytest.mark.slow
def test_labels_follow_the_motion(graphs: Graphs, pictures: Path) -> None:
    """Without it the labels are others than these bounds allow, so that the comparisons above can fail."""
    assert share(expected(graphs("motion"), pictures), expected(graphs("vq-dnn"), pictures)) < EQUAL_WITH_MOTION


def built(build: Path, *flags: str) -> Command:
    """The C++ program, compiled against the OpenVINO of this environment."""
    openvino = pytest.importorskip("openvino.utils")
    if not (shutil.which("cmake") and shutil.which("g++")):
        pytest.skip("no cmake or no g++: the C++ client is not built")
    configure = ["cmake", "-S", str(CLIENTS / "cpp"), "-B", str(build), f"-DOpenVINO_DIR={openvino.get_cmake_path()}"]
    for command in ([*configure, *flags], ["cmake", "--build", str(build)]):
        done = ran(command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert b"warning" not in done.stdout + done.stderr
    return [str(build / "steadyseg_client")]


@pytest.fixture(scope="session")
def python() -> Command:
    return PYTHON


@pytest.fixture(scope="session")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return built(tmp_path_factory.mktemp("cpp"))


every_client = pytest.mark.parametrize("name", ["python", "cpp"])


@pytest.mark.long
@every_client
def test_a_client_refuses_hostile_files(request, graphs, tmp_path, name):
    client: Command = request.getfixturevalue(name)
    refuses_hostile(limited(client), graphs, tmp_path, *(["none.mp4"] if name == "python" else []))


@pytest.mark.long
def test_cpp_is_video(cpp: Command, graphs: Graphs, pictures: Path) -> None:
    labels = by_raw_frames(cpp, graphs("vq-dnn"), pictures)
    assert share(labels, expected(graphs("vq-dnn"), pictures)) >= EQUAL


@pytest.mark.long
@every_client
def test_a_full_disk_is_one_line(request, graphs, pictures, tmp_path, name):
    """The output was lost, with exit code 0."""
    client, source = [*request.getfixturevalue(name), str(graphs("vq-dnn"))], str(pictures / "%05d.png")
    full = ["sh", "-c", 'exec "$@" > /dev/full', "sh", *client]
    (tmp_path / "000000.png").symlink_to("/dev/full")
    commands = [[*full, source], [*client, source, "-o", str(tmp_path)]] if name == "python" else [full]
    for command in commands:
        done = ran(command, input=decoded(pictures)[0].tobytes())
        assert done.returncode == 2 and b"no space left" in done.stderr.lower().splitlines()[-1], done


@pytest.mark.long
def test_frames_cut_short_and_unknown_flags_are_refused(cpp: Command, graphs: Graphs, pictures: Path) -> None:
    client, whole = [*cpp, str(graphs("vq-dnn"))], decoded(pictures)[0].tobytes()
    for given, labels in ((whole + whole[:-9], HEIGHT * WIDTH), (b"", 0)):
        done = ran(client, input=given)
        assert done.returncode == 2 and b"ends within a frame" in done.stderr.splitlines()[-1], done
        assert len(done.stdout) == labels
    for words in ([*client, "--bf61"], [client[0], *client[1:-1], "--help"]):
        assert not faults(ran(words, input=whole), "usage: ")


@pytest.mark.parametrize("size", [(48, 64), (24, 32)], ids=str)
def test_the_flow_of_the_python_client_is_the_product_s(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Client and product assume no motion where a picture is too small for OpenCV's optical flow."""
    monkeypatch.syspath_prepend(CLIENTS / "python")
    flow, estimate = importlib.import_module("steadyseg_client").Flow(size), MotionEstimator()
    for number, frame in enumerate(Street(seed=3, height=96, width=128).frames(3)):
        theirs, ours = flow(frame.image, number), estimate(frame.image, size, number)
        if number:
            assert ours
            np.testing.assert_array_equal(theirs["motion"][0], ours.source)
            np.testing.assert_allclose(theirs["trust"][0], ours.trust, atol=1e-6)


@pytest.mark.long
def test_cpp_has_no_fault_of_memory(graphs: Graphs, pictures: Path, tmp_path: Path) -> None:
    """The sanitizers of addresses and of undefined behaviour end a faulty program with exit code 1.

    OpenVINO's TBB opens a library with RTLD_DEEPBIND, which the sanitizer refuses: the flag is taken away.
    """
    header = tmp_path / "dlopen.hpp"
    header.write_text("""#include <dlfcn.h>
extern "C" void* dlopen(const char* path, int flags) noexcept {
    return reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"))(path, flags & ~RTLD_DEEPBIND);
}
""")
    flags = f"-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -include {header}"
    client = built(tmp_path / "build", "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={flags}")
    client = ["env", "ASAN_OPTIONS=detect_leaks=0", *client]  # of OpenVINO, where it throws
    by_raw_frames(client, graphs("vq-dnn"), pictures)
    refuses_hostile(client, graphs, tmp_path)


@pytest.mark.long
def test_cpp_follows_motion_with_opencv_alone(cpp: Command, graphs: Graphs, pictures: Path) -> None:
    done = ran([*cpp, str(graphs("motion"))], input=decoded(pictures)[0].tobytes())
    if done.returncode:
        assert b"built without OpenCV; export it with --motion off" in done.stderr
    else:
        labels = by_raw_frames(cpp, graphs("motion"), pictures)
        assert share(labels, expected(graphs("motion"), pictures)) >= EQUAL_WITH_MOTION


@pytest.mark.parametrize("path", [path for path in CLIENTS.rglob("*") if path.suffix in (".py", ".cpp", ".hpp")])
def test_a_client_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 200
