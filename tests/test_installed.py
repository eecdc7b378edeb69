"""The built wheel in an environment of its own, used from a folder outside of the checkout."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from made.waiting import PATIENCE_S

pytest.importorskip("hatchling")
PROJECT = Path(__file__).parent.parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the scripts of an environment that has the wheel, and the running environment's dependencies."""
    return install(tmp_path_factory.mktemp("installed"), "--no-index", "--ignore-installed", str(wheel))


def install(folder: Path, *what: str) -> Path:
    """Makes an environment in the folder and installs the project; returns the folder of its scripts."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Python reads no .pth file of a folder that a .pth file names: an editable installation there stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--no-deps", *what]
    subprocess.run(pip, check=True, capture_output=True)
    return folder / "bin"


def run(installed: Path, folder: Path, *words: str) -> str:
    command = [str(installed / "steadyseg"), *words]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def page(installed: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a page that `demo` serves."""
    words = ["demo", "street-tiny", "--port", "7911", "--no-open-browser"]
    command = [str(installed / "steadyseg"), *words]
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            found = re.search(r"https?://\S+", process.stdout.readline())
            assert found
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_its_code_is_not_the_checkouts(installed: Path, tmp_path: Path) -> None:
    code = "import steadyseg.app.cli, steadyseg.studies; print(steadyseg.app.__file__, steadyseg.studies.__path__)"
    done = subprocess.run(
        [str(installed / "python"), "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert str(PROJECT) not in done.stdout and done.stdout.count(str(installed.parent)) == 2, done


def test_it_brings_one_package_alone(wheel: Path) -> None:
    record = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/RECORD"))
    lines = zipfile.ZipFile(wheel).read(record).decode().splitlines()
    assert {line.split("/")[0] for line in lines} == {"steadyseg", record.split("/")[0]}


def test_it_is_the_same_from_the_source_distribution(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run([*build, "--target", "sdist"], cwd=PROJECT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    subprocess.run(
        [*build, "--target", "wheel"], cwd=archive.with_suffix("").with_suffix(""), check=True, capture_output=True
    )
    (again,) = tmp_path.glob("*.whl")
    assert again.read_bytes() == wheel.read_bytes()


def test_it_has_the_code_of_bench_and_of_no_other_study(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("steadyseg/studies/")]
    assert all(name.endswith(".py") for name in names)
    folders = {name.split("/")[2] for name in names if name.count("/") > 2}
    assert folders == {"harness", "performance"}


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for an editable installation of the checkout."""
    folder = tmp_path_factory.mktemp("editable")
    return install(folder, "--no-build-isolation", "--editable", str(PROJECT))


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the scripts of an environment that has the wheel and the lock of what running needs, no more."""
    folder = tmp_path_factory.mktemp("light") / "environment"
    python, lock = str(folder / "bin" / "python"), str(PROJECT / "requirements-running.lock")
    uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
    subprocess.run([*uv, "venv", "--python", sys.executable, str(folder)], check=True)
    sync = ["pip", "sync", "--python", python, "--require-hashes", "--only-binary", ":all:", lock]
    found = subprocess.run([*uv, *sync], capture_output=True, text=True)
    if found.returncode and "Failed to fetch" in found.stderr:
        pytest.skip(f"the locked packages cannot be fetched: {found.stderr}")
    assert not found.returncode, found.stderr
    subprocess.run([*uv, "pip", "install", "--python", python, "--no-deps", str(wheel)], check=True)
    return folder / "bin"


def test_running_needs_the_light_set_alone(light: Path, installed: Path, tmp_path: Path) -> None:
    assert "road-realtime" in run(light, tmp_path, "models")
    run(light, tmp_path, *["video", "street:7:3", "--model", "street-tiny", "-o", "out.mp4"])
    run(light, tmp_path, *["batch", "street:7:3", "--model", "street-tiny", "--workers", "1", "-o", "results"])
    (table,) = tmp_path.glob("results/*/frames.csv")
    assert len(table.read_text().splitlines()) == 4, "a title and three frames"
    run(installed, tmp_path, *["export", "street-tiny", "--stateful", "--with-proof", "-o", "street.onnx"])
    assert "by openvino" in run(light, tmp_path, "verify", "street.onnx")
    lacking = subprocess.run([str(light / "steadyseg"), "export", "street-tiny", "-o", "x.onnx"], capture_output=True)
    assert lacking.returncode == 2 and b"pip install '.[train]'" in lacking.stderr


SCRIPT = """import sys
import app, core, export, seg, studies  # the user's own
from steadyseg import InputError, MethodOptions, open_segmenter, open_source, segment

segmenter = open_segmenter("street-tiny", MethodOptions(mode="vq-dnn"))
frames = [maps.label.shape for _, maps in segment(open_source("street:7:3"), segmenter)]
try:
    open_segmenter("no such file.onnx", MethodOptions())
except InputError:
    own = {app.__file__, core.__file__, export.__file__, seg.__file__, studies.__file__}
    print(len(frames), len(own), {name for name in sys.modules if name == "classification"})
"""


@pytest.mark.parametrize("kind", ["installed", "editable", "light"])
def test_a_script_has_own_files_of_the_same_names(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Flask's and Gradio's file is app.py: a package of ours with that name would take its place."""
    for name in ("app", "core", "seg", "export", "studies"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "main.py").write_text(SCRIPT)
    python = request.getfixturevalue(kind) / "python"
    done = subprocess.run([str(python), "main.py"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout.split() == ["3", "5", "set()"], done.stderr


def test_demo_answers(page: str) -> None:
    with urllib.request.urlopen(page, timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    assert answer.status == 200 and "SteadySeg" in text


@pytest.mark.parametrize("command", ["bench", "train seg", "batch"])
def test_every_command_has_its_files(installed: Path, tmp_path: Path, command: str) -> None:
    assert "usage:" in run(installed, tmp_path, *command.split(), "--help")
