"""Network files that studies read: the included ones by name, and those that were trained for docs/records/results.

The trained files are not part of the repository; `docs/records/results/networks.json` has the seed, the command and the
digests of each network that was measured. A training on another machine gives other weights and so another digest.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from steadyseg.app.open_model import find_model
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.model.model import SUFFIX
from steadyseg.core.training.run_folder import MODEL_NAME
from steadyseg.studies.harness.study import PAGES, digest_of_weights

PROJECT = Path(__file__).resolve().parents[2]
RECORD = PAGES / "results" / "networks.json"


def file_of(model: str) -> Path:
    """The file of an included network by name, or of a path relative to the root of the repository.

    A path is returned whether a file is there or not.
    """
    return PROJECT / model if model.endswith(SUFFIX) else find_model(model)


def name_of(model: str) -> str:
    """The name of a file without folder and ending; of a training's model the name of its folder."""
    path = Path(model)
    return path.parent.name if path.stem == Path(MODEL_NAME).stem else path.stem


@cache
def measured_networks() -> dict[str, dict[str, Any]]:
    """The record of the networks that were measured, by name."""
    return dict(json.loads(RECORD.read_text()))


def digest_of(model: str) -> str:
    """The digest of the weights in the model's file; of a trained network without a file, the digest on record."""
    file = file_of(model)
    if model.endswith(SUFFIX) and not file.exists():
        return str(measured_networks()[file.parent.name]["weights"])
    return digest_of_weights(file)


def rests_on(model: str, data: str, *methods: MethodOptions, novelty: bool = False) -> str:
    """Joins the digests of all that figures of a network depend on.

    Args:
        model: An included network, or a path relative to the root of the repository.
        data: Digest of the data.
        methods: Methods of the figures, whose fitted temperatures count.
        novelty: True where the figures use the novelty statistics: their scores at home count, and the rule by which
            the temperature follows a frame.
    """
    meta = read_meta(file_of(model))
    parts = [data, digest_of(model), *(str(one.resolve(meta).temperature) for one in methods)]
    if novelty:
        used = json.dumps([meta.novelty.get("scores"), meta.novelty.get("warming")])
        parts.append(hashlib.sha256(used.encode()).hexdigest()[:12])
    return "-".join(parts)
