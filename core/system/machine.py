"""Where to compute, on how many cores and in which number format: what this machine really has."""

import os

import torch

from core.errors import InputError


def choose_device(name: str) -> torch.device:
    """auto: CUDA where it is there, else the CPU; a device asked for by name must exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise InputError(f"unknown device {name!r}; choose from auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda was asked for, but torch finds no CUDA device here; use --device cpu or auto")
    return torch.device(name)


def available_cpus() -> int:
    """Cores that this process may use; all of the machine's where the system does not tell (Windows, macOS)."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def trains_faster_in_bf16(device: torch.device) -> bool:
    """Whether autocast to bf16 speeds a training up: on CUDA, and on CPUs with AVX512-BF16 or AMX.

    Two 3x3 convolutions, forward and backward, fp32 against bf16, ms: AVX512-BF16 46 and 28; AVX-512 without it 47 and
    118; AVX2 58 and 597.
    """
    if device.type == "cuda":
        return True
    return onednn_may_use_bf16() and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def onednn_may_use_bf16() -> bool:
    """Whether oneDNN (torch's and OpenVINO's) is not held to instructions without bf16; what the processor has is not
    asked.

    Held to less, torch emulates bf16 and OpenVINO finds no kernel for some layers ("could not create a primitive").
    """
    held = os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", ""))
    return held.upper() not in ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
