"""The tabs "Live" and "Compare": the camera beside what the network makes of it, and two methods side by side."""

from typing import Any

from app.page_legend import legend
from app.page_settings import MODES
from app.page_stage import details, stage
from core.classes import ClassList


def add_live_tab(classes: ClassList, source: str | None) -> list[Any]:
    """Returns the parts that another model changes: the legend."""
    import gradio as gr

    gr.HTML(stage("live", source), js_on_load=None)
    colors = gr.HTML(legend(classes), js_on_load=None, elem_id="legend")
    gr.HTML(details("live"), js_on_load=None)
    return [colors]


def add_compare_tab(classes: ClassList, source: str | None) -> tuple[list[Any], list[Any]]:
    """(the legend, the two controls of this tab)."""
    import gradio as gr

    with gr.Group():
        against = gr.Radio(list(MODES), value="dnn", label="Left", elem_id="against")
        mark = gr.Checkbox(False, label="paint what changed since the last picture white", elem_id="mark-changes")
    gr.HTML(stage("compare", source), js_on_load=None)
    colors = gr.HTML(legend(classes), js_on_load=None, elem_id="legend-compare")
    gr.HTML(details("compare"), js_on_load=None)
    return [colors], [against, mark]
