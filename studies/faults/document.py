"""The measured sections of docs/studies/reliability, each from its own JSON file.

python -m studies.faults.document        makes them again
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.system.files import write_atomic
from studies.faults.fuzzing.document import fuzzing_section
from studies.faults.page_soak.document import page_section
from studies.faults.rtsp.document import rtsp_section
from studies.harness.study import PAGES

PAGE = PAGES / "reliability"
SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "RTSP": ("rtsp.json", rtsp_section),
    "The page for an hour": ("page-soak.json", page_section),
    "Damaged files and requests": ("fuzzing.json", fuzzing_section),
}


def document(page: Path) -> str:
    """The text with the sections of today's records in the place of the old ones; at its end where there was none."""
    text = (page / "README.md").read_text()
    for heading, (name, section) in SECTIONS.items():
        before, found, rest = text.partition(f"## {heading}\n")
        after = re.search(r"^## ", rest, re.MULTILINE) if found else None
        body = section(json.loads((page / name).read_text()))
        text = f"{before.rstrip()}\n\n## {heading}\n\n{body}\n" + (f"\n{rest[after.start() :]}" if after else "")
    return text


def write_document(page: Path) -> None:
    write_atomic(page / "README.md", document(page).encode())


if __name__ == "__main__":
    sys.exit(write_document(PAGE))
