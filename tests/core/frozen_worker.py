"""The process that tests/core/test_distributed.py starts twice: rank 1 freezes, or rank 0 works alone for longer
than the time limit."""

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

from steadyseg.core.errors import CheckFailed
from steadyseg.core.training import distributed

PATIENCE_S = 3.0

if __name__ == "__main__":
    here = Path(sys.argv[1])
    (here / os.environ["RANK"]).touch()
    while len(list(here.iterdir())) < 2:  # both have imported torch: joining is within the patience too
        time.sleep(0.01)
    distributed.PATIENCE = timedelta(seconds=PATIENCE_S)
    try:
        with distributed.join_processes("cpu") as processes:
            if processes.is_main:
                time.sleep(1.5 * PATIENCE_S)  # evaluates
            processes.wait()
            print("met", flush=True)
            if not processes.is_main:
                os.kill(os.getpid(), signal.SIGSTOP)
            processes.sums(1.0)
    except CheckFailed as error:
        print(error)
        sys.exit(1)
