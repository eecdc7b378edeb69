"""Checks that the tracked files stay small: a repository keeps every byte that was ever committed."""

import subprocess
import sys
from pathlib import Path

MAX_FILE_BYTES = 8_000_000
MAX_TOTAL_BYTES = 44_000_000


def main() -> int:
    """Prints each tracked file over the limit, and the total if it is; returns 1 where a limit is exceeded."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True).stdout
    sizes = {name: Path(name).stat().st_size for name in listed.split("\0") if name and Path(name).is_file()}
    problems = [
        f"{name}: {size / 1e6:.1f} MB, at most {MAX_FILE_BYTES / 1e6:g} MB are allowed"
        for name, size in sizes.items()
        if size > MAX_FILE_BYTES
    ]
    total = sum(sizes.values())
    if total > MAX_TOTAL_BYTES:
        problems.append(f"all tracked files: {total / 1e6:.1f} MB, at most {MAX_TOTAL_BYTES / 1e6:g} MB are allowed")
    print("\n".join(problems) or f"tracked files: {total / 1e6:.1f} MB")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
