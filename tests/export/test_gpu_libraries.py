"""CUDA's libraries: the locked wheels bring what ONNX Runtime's provider needs; a missing one is named."""

import re
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

PROJECT = Path(__file__).parents[2]
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|util)|ld-linux-x86-64)\.so\.\d+")
DRIVER = {"libcuda.so.1"}
LOADED_LATER = {"libcudnn.so.9", "libcufft.so.12"}
"""Libraries that dlopen loads at the first convolution or transform; no header names them."""
WHEELS = ("cublas", "cuda-nvrtc", "cuda-runtime", "cudnn-cu13", "cufft", "curand")


def needed(library: Path) -> set[str]:
    """The names of DT_NEEDED."""
    with library.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        return {tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}


def test_the_installed_wheels_have_every_library_of_the_provider() -> None:
    provider = next(
        (one for one in files("onnxruntime-gpu") or () if one.name == "libonnxruntime_providers_cuda.so"), None
    )
    if provider is None:
        pytest.skip("this platform has no onnxruntime-gpu")
    packages = Path(str(provider.locate())).parents[2]
    brought = {one.name: one for one in [*packages.glob("nvidia/**/*.so*"), *packages.glob("onnxruntime/capi/*.so*")]}
    todo, seen = [Path(str(provider.locate()))], set[str]()
    missing = LOADED_LATER - brought.keys()
    while todo:
        for name in needed(todo.pop()) - seen - DRIVER:
            seen.add(name)
            if name in brought:
                todo.append(brought[name])
            elif not SYSTEM.fullmatch(name):
                missing.add(name)
    assert "libcurand.so.10" in seen and not missing


@pytest.mark.parametrize("lock", ["requirements.lock", "deploy/requirements.lock"])
def test_the_locks_bring_the_wheels_that_have_them(lock: str) -> None:
    text = (PROJECT / lock).read_text()
    assert not [name for name in WHEELS if not re.search(rf"^nvidia-{name}==", text, re.MULTILINE)]


PROGRAM = """
import functools, sys
import onnxruntime
from pathlib import Path
from steadyseg.core.system import machine
from steadyseg.export.file import sessions

onnxruntime.preload_dlls = functools.partial(onnxruntime.preload_dlls, directory=sys.argv[1])  # a folder without them
machine.GPU = Path(sys.argv[1])  # a card whose device file is there
print(machine.idle_gpu(sessions.why_no_gpu()))
print(sessions._preload(onnxruntime))
"""


def test_a_missing_library_is_named_with_what_brings_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=PROJECT, capture_output=True, text=True)
    idle, missing = run.stdout.splitlines()
    assert "libcurand.so.10" in missing and missing.endswith("pip install 'onnxruntime-gpu[cuda,cudnn]'"), run
    assert idle == f"; the GPU {tmp_path} is not used: {missing}"
