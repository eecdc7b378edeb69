"""The built wheel in an environment of its own, used from a folder outside of the checkout."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Python reads no .pth file of a folder that a .pth file names: an editable installation there stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "install",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, "--ignore-installed", str(wheel)], check=True, capture_output=True)
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
        assert process.wait(60) == 0


def test_its_code_is_not_the_checkouts(installed: Path, tmp_path: Path) -> None:
    code = "import app, studies, steadyseg; print(app.__file__, studies.__path__, steadyseg.__version__)"
    done = subprocess.run(
        [str(installed / "python"), "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert str(PROJECT) not in done.stdout and done.stdout.count(str(installed.parent)) == 2, done


def test_it_has_the_code_of_the_studies_without_their_records(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("studies/")]
    assert "studies/performance/command.py" in names and all(name.endswith(".py") for name in names)


def test_demo_answers(page: str) -> None:
    with urllib.request.urlopen(page, timeout=30) as answer:
        text = answer.read().decode()
    assert answer.status == 200 and "SteadySeg" in text


def test_video_of_the_street(installed: Path, tmp_path: Path) -> None:
    run(
        installed,
        tmp_path,
        *["video", "street:7:5", "--model", "street-tiny", "-o", "out.mp4", "--report", "report.json"],
    )
    assert (tmp_path / "out.mp4").stat().st_size > 10_000
    assert json.loads((tmp_path / "report.json").read_text())["frames"] == 5


def test_export(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, *["export", "street-tiny", "--stateful", "-o", "street.onnx"])
    run(installed, tmp_path, *["video", "street:7:2", "--model", "street.onnx", "-o", "again.mp4"])
    assert (tmp_path / "again.mp4").exists()


@pytest.mark.parametrize("command", ["bench", "analyze fourier", "analyze robustness", "train seg", "batch"])
def test_every_command_has_its_files(installed: Path, tmp_path: Path, command: str) -> None:
    assert "usage:" in run(installed, tmp_path, *command.split(), "--help")
