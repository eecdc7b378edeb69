"""Check of a Ray cluster's address in a process of its own: Ray itself waits 80 s for a silent one, and no flag
shortens that."""

import os
import re
import subprocess
import sys

from core.errors import InputError

PATIENCE_S = 12.0
"""Time limit for an answer of a cluster, which takes 2 s; with the imports of a command 4 s of processor time, less
than 20 s."""
TRY = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""
ATTEMPTS = "RAY_NUM_REDIS_GET_RETRIES"
"""Attempts at a refused connection, one a second; Ray makes 20."""
LOCAL = re.compile(r"(localhost|127\.[0-9.]+|\[?::1\]?)(:|$)")


def is_loopback(address: str | None) -> bool:
    """True if the address stays on this machine; no address is Ray's embedded cluster."""
    return address is None or LOCAL.match(address) is not None


def check_address(address: str) -> None:
    """Raises InputError, one line, if no cluster answers in time, or if it asks for a token or runs another version
    of Ray or Python."""
    try:
        tried = subprocess.run(
            [sys.executable, "-c", TRY, address],
            env={ATTEMPTS: "3"} | os.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise _refusal(address, f"no answer within {PATIENCE_S:g} s") from error
    if tried.returncode == 0:
        return
    if "InvalidAuthToken" in tried.stderr:
        raise InputError(
            f"--ray-address {address}: this cluster asks for a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN "
            f"where it is "
            "not that of ~/.ray/auth_token"
        )
    said = (tried.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    raise _refusal(address, said[:300])


def _refusal(address: str, reason: str) -> InputError:
    return InputError(f"--ray-address {address}: {reason}; is `ray start --head` running there, of this version?")
