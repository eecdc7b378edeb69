"""A Ray cluster's address, tried out by a process of its own: Ray's own patience with a silent one is 80 s, without a
flag."""

import os
import re
import subprocess
import sys

from core.errors import InputError

PATIENCE_S = 12.0
"""For a cluster to answer, which takes 2 s; with the imports of a command, 4 s of a processor, less than 20 s."""
TRY = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""
ATTEMPTS = "RAY_NUM_REDIS_GET_RETRIES"
"""Of a connection that is refused, one a second; Ray's 20 would be longer than anybody waits."""
LOCAL = re.compile(r"(localhost|127\.[0-9.]+|\[?::1\]?)(:|$)")


def is_loopback(address: str | None) -> bool:
    """Whether nothing beyond this machine is meant; no address is Ray's embedded cluster."""
    return address is None or LOCAL.match(address) is not None


def check_address(address: str) -> None:
    """InputError, one line, where no cluster answers in time, asks for a token, or runs another version of Ray or
    Python."""
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
