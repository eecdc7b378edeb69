"""The proof that an export puts into its file, with the record of what was promised and measured of the method."""

from collections.abc import Mapping
from typing import Any

import torch

from steadyseg.app.console import Console
from steadyseg.app.export.segmenter import proof_frames
from steadyseg.core.errors import CheckFailed
from steadyseg.core.method import SETTINGS, Method
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.core.model.model import Model
from steadyseg.export.file.metadata import GraphMeta
from steadyseg.export.run.graph import GraphStreams
from steadyseg.export.run.verify import graph_step, verify
from steadyseg.export.write.carried_proof import make_proof
from steadyseg.export.write.traced import Traced

KEYS = set(
    (
        "data split protocol frames images temperature nll_before nll_after ece_before ece_after accuracy miou nll ece "
        "conformal coverage_asked coverage lac aps class_risk class level threshold risk"
    ).split()
)
"""Keys of a record that are kept, at every depth."""


def proof_entries(model: Model, traced: Traced, meta: GraphMeta, console: Console) -> dict[str, str]:
    """Returns the entries of metadata; CheckFailed where the graph fails its own proof on this CPU."""
    torch.manual_seed(0)
    proof = make_proof(traced, meta, proof_frames(), record_of(model.meta, meta.method))
    streams = meta.streams or 1
    step = graph_step(GraphStreams(traced.model(meta).SerializeToString(), meta, "cpu", streams))
    verified = verify(proof, meta, step, streams)
    if not verified.holds:
        raise CheckFailed(f"the graph fails the proof that it would carry, so no file was written: {verified}")
    console.print(f"carries a proof, and passes it here: {verified}", soft_wrap=True)
    return proof.to_props()


def record_of(meta: CheckpointMeta, method: Method) -> dict[str, Any]:
    """Returns the calibration in use (`fit`) and the figures of exactly this method (`measured`), without the lists of
    single images and classes."""
    measured = [figures for figures in meta.metrics.values() if is_of(figures, method)]
    return {
        "fit": chosen(meta.fit_in_use(method)),
        "measured": [chosen(figures) for figures in measured],
    }


def is_of(figures: Any, method: Method) -> bool:
    """True for figures of this method and temperature."""
    if not isinstance(figures, Mapping) or figures.get("temperature") != method.temperature:
        return False
    return all(figures.get(name) == getattr(method, name) for name in SETTINGS)


def chosen(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of `KEYS` that have a value, to four digits."""
    return {key: short(value) for key, value in record.items() if key in KEYS and value is not None}


def short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return chosen(value)
    return float(f"{value:.4g}") if isinstance(value, float) else value
