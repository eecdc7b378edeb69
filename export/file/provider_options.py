"""Options of ONNX Runtime's CUDA provider that a user may set, their values, and our defaults."""

from collections.abc import Mapping, Sequence

from steadyseg.core.errors import InputError, shorten, suggest

SWITCH = ("0", "1")
CHOICES: dict[str, tuple[str, ...]] = {
    "arena_extend_strategy": ("kNextPowerOfTwo", "kSameAsRequested"),
    "cudnn_conv_algo_search": ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
    "cudnn_conv_use_max_workspace": SWITCH,
    "enable_cuda_graph": SWITCH,
    "fuse_conv_bias": SWITCH,
    "prefer_nhwc": SWITCH,
    "use_ep_level_unified_stream": SWITCH,
    "use_tf32": SWITCH,
}
"""Values by option (onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html).

No user may set `device_id`, since CUDA_VISIBLE_DEVICES chooses the card, nor `do_copy_in_default_stream`, which without
its default has race conditions. Addresses in this process, and options of operators that no file has, are left out too.
"""
BYTES = "gpu_mem_limit"
DEFAULTS = {"cudnn_conv_algo_search": "EXHAUSTIVE", "cudnn_conv_use_max_workspace": "1"}
"""The search tries every convolution once for each shape, and the shapes of a file are fixed."""


def read_provider_options(words: Sequence[str]) -> dict[str, str]:
    """Reads NAME=VALUE words; InputError for others.

    ONNX Runtime itself does not check them where it finds no GPU.
    """
    options: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in (*CHOICES, BYTES):
            known = suggest(name, sorted([*CHOICES, BYTES]))
            raise InputError(f"provider_options: {shorten(name)} is none of the CUDA provider; {known}")
        if not (value.isascii() and value.isdigit() if name == BYTES else value in CHOICES[name]):
            expected = "a number of bytes" if name == BYTES else " or ".join(CHOICES[name])
            raise InputError(f"provider_options: {name} must be {expected}, got {shorten(value)}")
        options[name] = value
    return options


def refuse_on_cpu(device: str, options: Mapping[str, str] | None) -> None:
    """Raises InputError if options were given and the file runs on the CPU."""
    if options and device == "cpu":
        raise InputError(
            "provider_options are of the CUDA provider, and the CPU computes here; omit them, or give device cuda to "
            "see what is missing"
        )
