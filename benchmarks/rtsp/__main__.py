"""Ten minutes of RTSP over everything that happens to a network camera, and what `steadyseg video` makes of it.

    python -m benchmarks.rtsp [--seconds 600] [--document]

A real server (benchmarks/rtsp/server.py says which packages it needs) behind a proxy of ours: killed and started again five
times, held back for 30 s, cut off five times, and the picture's size changed. Writes docs/rtsp.json and the section *RTSP* of
docs/reliability.md; --document only makes the section again.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.rtsp.document import write_section
from benchmarks.rtsp.watch import watch_video
from benchmarks.study import exit_code
from core.atomic_file import write_whole

DOCS = Path(__file__).parents[2] / "docs"
USUAL_S = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=USUAL_S, help="shorter ones squeeze all but the stall's 30 s")
    parser.add_argument("--document", action="store_true", help="measure nothing")
    given = parser.parse_args()
    return exit_code("rtsp", lambda: run(given.seconds, given.document))


def run(seconds: float, only_document: bool) -> None:
    if not only_document:
        with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder:
            record = watch_video(Path(folder), seconds, Console(stderr=True))
        text = json.dumps(record, indent=1) + "\n"
        if seconds < USUAL_S:
            print(text)
            return
        write_whole(DOCS / "rtsp.json", text.encode())
    write_section(DOCS)


if __name__ == "__main__":
    sys.exit(main())
