"""The processor that a study runs on, how busy the machine is, and the memory of this process."""

import os
import sys
from typing import Any

import torch


def about_torch(device: torch.device) -> dict[str, Any]:
    """Describes in a report where torch computed."""
    threads, cores = torch.get_num_threads(), os.cpu_count()
    return {"device": device.type, "threads": threads, "cores": cores, "torch": torch.__version__}


def load_average() -> float | None:
    """Mean number of running and waiting processes over the last minute; None where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def peak_rss_bytes() -> int | None:
    """The largest resident memory of this process so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
