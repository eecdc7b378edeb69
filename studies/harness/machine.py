"""The processor that a study runs on, and how busy the machine is."""

import os
import platform
from pathlib import Path
from typing import Any

import torch


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def about_torch(device: torch.device) -> dict[str, Any]:
    """Describes in a report where torch computed."""
    threads, cores = torch.get_num_threads(), os.cpu_count()
    return {"device": device.type, "threads": threads, "cores": cores, "torch": torch.__version__}


def load_average() -> float | None:
    """Mean number of running and waiting processes over the last minute; None where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
