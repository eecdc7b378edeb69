"""The tab "About this model": its card, metrics, limits and licence."""

import re
from pathlib import Path
from typing import Any

from steadyseg.app.page.parts.settings import model_meta
from steadyseg.core.method import method_of_fit
from steadyseg.core.model.checkpoint import CheckpointMeta
from steadyseg.runtime.open_model import is_graph
from steadyseg.seg.pretrained import find_checkpoint

PROTOCOLS = {"stills": "single pictures", "stream": "a video", "moving-stills": "pictures with made motion"}
PLAIN = (
    "Figures hold for pictures like those they were measured on. In other places (indoors, at night, in rain, abroad) "
    "the model still assigns a class to every pixel. Look at the uncertainty map there, but do not rely on it: on "
    "motorways, the default network is more confident than in the towns of its training. It is not a safety device."
)
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<[^>]*>")
"""A card could name a picture of another host, and the page asks no other host for anything."""
LINK = re.compile(r"\[([^\]]*)\]\((?!https?://)[^)]*\)")
"""A link to a file of the repository: the page does not serve the file, so only the link's words stay."""


def add_about_tab(model: str) -> list[Any]:
    """Adds the tab and returns the components that change with the model: the short card and the whole card."""
    import gradio as gr

    short, whole = about(model)
    shown = gr.Markdown(short, sanitize_html=True, elem_id="about")
    with gr.Accordion("The whole card: training, figures, limits", open=False, elem_id="card"):
        return [shown, gr.Markdown(whole, sanitize_html=True, elem_id="about-all")]


def about(model: str) -> tuple[str, str]:
    """Markdown about the model: first the facts of its record; then its metrics and the model card beside it, if there
    is a card."""
    path = Path(model) if is_graph(model) else find_checkpoint(model)
    meta = model_meta(model)
    short = [f"## {path.stem} in short", PLAIN, "", *facts(meta), f"- licence: {meta.licence or 'not stated'}"]
    whole, card = figures(meta), path.with_suffix(".md")
    if card.is_file():
        whole += ["", LINK.sub(r"\1", IMAGE.sub("", card.read_text(errors="replace")))]
    return "\n".join(short), "\n".join(whole)


def facts(meta: CheckpointMeta) -> list[str]:
    """The model's properties as a list."""
    fits = list[str]()
    for fit in meta.calibration.values():  # without data: a temperature that was given by hand
        where = f" on {fit['frames']} pictures of {fit['data']} {fit['split']}" if "data" in fit else ""
        fits.append(f"{method_of_fit(fit)} (temperature {fit['temperature']:.2f}{where})")
    familiarity = "no, so the page cannot tell you whether your pictures are like those it was trained on"
    if isinstance(data := meta.familiarity.get("about"), dict):
        more = f"{data.get('held_out')} more that set the scale of familiarity"
        familiarity = f"yes, from {data.get('frames')} frames, and {more}"
    return [
        f"- {len(meta.classes)} classes: {', '.join(meta.classes.names)}",
        f"- input size: {meta.width}x{meta.height} pixels; larger pictures are reduced first",
        f"- calibrated for: {', '.join(fits)}" if fits else "- not calibrated: its confidences are the network's own",
        f"- familiarity: {familiarity}",
    ]


def figures(meta: CheckpointMeta) -> list[str]:
    """Markdown lines: a table of the metrics, or a sentence that there are none."""
    rows = [record for record in meta.metrics.values() if isinstance(record, dict) and "accuracy" in record]
    if not rows:
        return ["Nothing was measured."]
    head = "| measured on | method | accuracy | mean IoU | calibration error (ECE) | temporal consistency |"
    return [head, "|---|---|---|---|---|---|", *map(_row, rows)]


def _row(record: dict[str, Any]) -> str:
    where = f"{record.get('data', '?')} {record.get('split', '')}, {PROTOCOLS.get(record.get('protocol', ''), '?')}"
    values = (record.get(key) for key in ("accuracy", "miou", "ece", "consistency"))
    shares = (f"{value:.1%}" if isinstance(value, float) else "-" for value in values)
    return f"| {where} | `{record.get('mode', '?')}` | {' | '.join(shares)} |"
