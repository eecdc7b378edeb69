"""Wheels for a GPU machine without a network, small enough to carry: they lack CUDA code for other cards.

    pip uninstall -y onnxruntime; pip install --no-index --no-deps OUT/*.whl      # there

PyTorch, timm, numba, ONNX, OpenCV and CUDA 13's libraries must be there. The wheel of
onnxruntime-gpu keeps what `import onnxruntime` and the CUDA provider load, with the kernels of one compute capability.
Version 1.31.1 shrinks from 243.7 to 58.4 MiB. The other wheels have 0.4 MiB, and the files of `prepare` 14.2 MiB.
"""

import struct
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

from steadyseg.core.errors import InputError

PACKAGES = ("onnxruntime-gpu", "segmentation-models-pytorch", "tyro", "docstring-parser", "typeguard")
"""segmentation-models-pytorch for the included networks in torch; tyro and its two for exports and trainings."""
PLATFORMS = [f"--platform=manylinux_2_{minor}_x86_64" for minor in (28, 27, 17)]
UNUSED = ("/libonnxruntime.so", "/libonnxruntime_providers_tensorrt", "onnxruntime/transformers/", "onnxruntime/tools/")
BEGIN, CONTAINER, ENTRY = struct.pack("<IHH", 0xBA55ED50, 1, 16), struct.Struct("<8xQ"), struct.Struct("<4xIQ12xI")
"""A fat binary begins with a magic number, its version and the size of its header, then the bytes of all entries. An
entry begins with a kind, then the bytes of its header and of its code, and 10 x the compute capability. NVIDIA does not
document the format; its `cuobjdump --list-elf` finds the same code before and after."""


def thin(library: bytes, capability: int) -> bytes:
    """The library with the code of one compute capability (90 for 9.0). Every fat binary stays at its address; its
    entries of other capabilities become zeros after its end. A fat binary without the wanted one stays whole."""
    data, end = bytearray(library), 0
    while (place := data.find(BEGIN, end)) >= 0:
        at = start = place + CONTAINER.size
        end, kept = start + CONTAINER.unpack_from(data, place)[0], b""
        while at < end:
            head, code, made_for = ENTRY.unpack_from(data, at)
            kept += data[at : at + head + code] if made_for == capability else b""
            at += head + code
        if kept:
            data[start:end] = kept.ljust(end - start, b"\0")
            struct.pack_into("<Q", data, place + len(BEGIN), len(kept))
    return bytes(data)


def thin_wheel(wheel: Path, capability: int) -> None:
    """Writes the wheel again, compressed better."""
    small = wheel.with_suffix(".small")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(small, "w", zipfile.ZIP_LZMA) as new:
        for name in old.namelist():
            if not any(part in name for part in UNUSED):
                data = old.read(name)
                new.writestr(name, thin(data, capability) if name.endswith("providers_cuda.so") else data)
    small.replace(wheel)


def fetch(out: Path, python: str, capability: str) -> None:
    """Downloads the wheels of the installed versions, and prints their sizes."""
    wanted = [f"{name}=={version(name)}" for name in PACKAGES]
    flags = ["--no-deps", "--only-binary=:all:", "--python-version", python, *PLATFORMS, "-d", str(out)]
    if subprocess.run([sys.executable, "-m", "pip", "download", "-q", *flags, *wanted], check=False).returncode:
        raise InputError(f"pip found no wheels for Python {python}; give another --python")
    for wheel in sorted(out.glob("*.whl")):
        if wheel.name.startswith("onnxruntime_gpu"):
            thin_wheel(wheel, round(10 * float(capability)))
        print(f"{wheel.stat().st_size / 2**20:6.1f} MiB  {wheel.name}")
