"""The machine: its devices, cores and number formats, and the memory that glibc keeps or releases."""

import ctypes
import math
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from steadyseg.core.errors import InputError

if TYPE_CHECKING:
    import torch

NumberFormat = Literal["fp32", "bf16", "fp16"]
"""The formats in which torch computes a network."""
CGROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_NEVER = 2**31 - 1


def choose_device(name: str) -> "torch.device":
    """The device of that name; auto prefers CUDA to the CPU. Raises InputError for a device that is absent."""
    import torch  # half a second, and workers choose their cores before it is imported

    require_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda was asked for, but torch finds no CUDA device here; use device cpu or auto")
    return torch.device(name)


GPU = Path("/dev/nvidia0")
"""The first NVIDIA card that Linux's driver found."""
OTHER_GPUS = (Path("/dev/dxg"), Path("/dev/nvhost-gpu"))
"""The card of a Linux inside Windows, and of a Jetson."""


def has_cuda() -> bool:
    """True if torch finds a CUDA device. Without a card's device file, torch is not asked: its import takes seconds."""
    import importlib.util

    if sys.platform.startswith("linux") and not any(path.exists() for path in (GPU, *OTHER_GPUS)):
        return False
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def idle_gpu(reason: str) -> str:
    """Says why the GPU of this machine is not used, as an end of the reason for a CPU backend. Empty without a GPU."""
    return f"; the GPU {GPU} is not used: {reason}" if GPU.exists() else ""


def require_device_name(name: str) -> None:
    """Raises InputError for a name that is no device of any machine."""
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {name!r}; choose from auto, cpu, cuda")


def available_cpus() -> int:
    """Number of cores that this process may use: of the machine, of its affinity on Linux, and of the quota of its
    container, rounded up."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        cores = os.process_cpu_count() or 1
    else:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, min(cores, math.ceil(quota))) if quota < math.inf else cores


def cpu_quota() -> float:
    """Cores of the smallest CPU quota among the control groups of this process; `math.inf` without one.

    `OWN_GROUPS` names the groups: "0::/a/b" (v2) or "4:cpu,cpuacct:/a/b" (v1). In a container, `CGROUPS` is often the
    group itself.
    """
    quotas = [math.inf]
    for line in _lines(OWN_GROUPS) or ["0::/"]:
        _, _, rest = line.partition(":")
        kinds, _, group = rest.partition(":")
        if kinds and "cpu" not in kinds.split(","):
            continue
        base = CGROUPS / kinds if kinds else CGROUPS
        place = base / group.lstrip("/")
        for folder in (place, *place.parents):
            quotas.append(_quota_of(folder))
            if folder == base:
                break
    return min(quotas)


def _quota_of(folder: Path) -> float:
    words = [*_lines(folder / "cpu.max"), *_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
    numbers = [int(word) for word in " ".join(words).split() if word.isdecimal()]
    return numbers[0] / numbers[1] if len(numbers) == 2 and numbers[1] else math.inf  # "max", or -1: no quota


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, ValueError):
        return []


def training_precision(device: "torch.device") -> NumberFormat:
    """Returns the number format of autocast in which a training is fastest.

    bf16 on CPUs with AVX512-BF16 or AMX, and fp32 on others. Two 3x3 convolutions, forward and backward, fp32 -> bf16,
    take 46 -> 28 ms with AVX512-BF16. With AVX-512 alone they take 47 -> 118 ms, with AVX2 58 -> 597 ms.
    """
    import torch

    if device.type == "cuda":
        return cuda_precision(device)
    has_bf16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16" if has_bf16 and onednn_may_use_bf16() else "fp32"


def cuda_precision(device: "torch.device") -> NumberFormat:
    """Returns the number format of the card's tensor cores, by its compute capability.

    bf16 from 8.0 (Ampere). fp16 from 7.0 (Volta, Turing), which emulate bf16 slowly. fp32 for older cards without
    tensor cores.
    """
    import torch

    capability = torch.cuda.get_device_capability(device)
    return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "fp32"


def autocast(device_type: str, precision: str) -> "torch.autocast":
    """Returns the context in which torch computes a network in fp32, bf16 or fp16; weights stay in fp32."""
    import torch

    number = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    return torch.autocast(device_type, number, enabled=number is not None)


def onednn_may_use_bf16() -> bool:
    """Returns False if the environment limits oneDNN (torch's and OpenVINO's) to instructions without bf16.

    The processor itself is not checked. Under the limit torch emulates bf16 and OpenVINO finds no kernel for some
    layers ("could not create a primitive").
    """
    held = os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", ""))
    return held.upper() not in ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")


def keep_freed_memory() -> None:
    """Tells glibc to keep freed blocks for the next step; nothing changes where the C library is another one.

    Width 16, batch 4 of 288x384, two cores, bf16: 590 -> 530 ms a step, the difference being page faults.
    """
    if libc := _libc():
        libc.mallopt(_M_MMAP_THRESHOLD, _NEVER)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)


def share_arenas() -> None:
    """Tells glibc to use two heaps for all threads. With a heap for each visitor's thread, freed memory would stay in
    the thread's heap.

    50 visitors of the page who came and left: 1.3 -> 2.0 GB resident without this and `trim_memory`.
    """
    if libc := _libc():
        libc.mallopt(_M_ARENA_MAX, 2)


def trim_memory() -> None:
    """Returns free memory to the system now (some milliseconds)."""
    if libc := _libc():
        libc.malloc_trim(0)


def _libc() -> ctypes.CDLL | None:
    """The C library glibc, or None on systems with another one."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        libc = ctypes.CDLL("libc.so.6")
        return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
    except OSError:
        return None


def cpu_name() -> str:
    """Returns the model of the processor, such as AMD EPYC 9B45, or its architecture, such as x86_64, where the system
    names no model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
