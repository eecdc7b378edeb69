"""Results by network of the studies of familiarity, which lie in OUT/NETWORK/STUDY.pickle."""

import argparse
import pickle
from pathlib import Path
from typing import Any

OUT = Path("runs/familiarity")


def flags(about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser


def save(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(value))
    partial.rename(path)
