"""Ten minutes of RTSP with the faults of a network camera, for the command and for the page.

    python -m steadyseg.studies.faults.rtsp [--only video|page] [--seconds 600]

A real server (studies/faults/rtsp/server.py says which packages it needs) behind a proxy of ours: killed and started
again five times, held back for 30 s, cut off five times, and the picture's size changed. Writes
docs/studies/reliability/rtsp.json and the page. A run shorter than ten minutes is only printed.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from steadyseg.core.system.files import write_atomic
from steadyseg.studies.faults.rtsp.page import watch_page
from steadyseg.studies.faults.rtsp.watch import watch_video
from steadyseg.studies.harness.pages import write_page
from steadyseg.studies.harness.study import PAGES, exit_code

PAGE = PAGES / "reliability"
USUAL_S = 600.0
WATCHED = {"video": watch_video, "page": watch_page}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=WATCHED, help="only this one")
    parser.add_argument(
        "--seconds",
        type=float,
        default=USUAL_S,
        help="length of the run; a shorter one brings the faults closer together",
    )
    given = parser.parse_args()
    watched = (given.only,) if given.only else tuple(WATCHED)
    return exit_code("rtsp", lambda: run(watched, given.seconds))


def run(watched: tuple[str, ...], seconds: float) -> None:
    place = PAGE / "rtsp.json"
    record = json.loads(place.read_text()) if place.exists() else {}
    for name in watched:
        with tempfile.TemporaryDirectory(prefix="steadyseg-") as folder:
            record[name] = WATCHED[name](Path(folder), seconds, Console(stderr=True))
    text = json.dumps(record, indent=1) + "\n"
    if seconds < USUAL_S:
        print(text)
        return
    write_atomic(place, text.encode())
    write_page("reliability")


if __name__ == "__main__":
    sys.exit(main())
