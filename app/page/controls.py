"""The controls beside the tabs. The browser sends their values with every frame; nothing restarts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.page.settings import (
    FIRST_MODE,
    LEAST_TAU,
    MODES,
    MOST_SAMPLES,
    MOST_TAU,
    MOST_WINDOW,
    SAMPLES,
    SECONDS,
    TAU,
    MethodSettings,
    Second,
    Settings,
    ViewSettings,
    model_choices,
    model_meta,
)
from app.video.render import conformal_threshold
from core.checkpoint import CheckpointMeta
from core.errors import InputError
from seg.options import ModeName
from seg.torch_segmenter import default_tau

SET_JS = "(...values) => { window.steadyseg?.set(...values); return []; }"
"""Runs in the browser alone: the next frame carries the new values."""


@dataclass(frozen=True)
class Controls:
    """Gradio components. Their order in `values` is the order of the arguments of `set` in app/page/web/live.js."""

    model: Any
    mode: Any
    samples: Any
    tau: Any
    motion: Any
    window: Any
    calibrated: Any
    second: Any
    opacity: Any
    min_confidence: Any

    @property
    def values(self) -> list[Any]:
        return [
            self.model, self.mode, self.samples, self.tau, self.motion, self.window, self.calibrated, self.second,
            self.opacity, self.min_confidence,
        ]  # fmt: skip

    @staticmethod
    def settings(values: Sequence[Any]) -> Settings:
        """What Gradio hands to a function for `values`, as the file tab needs it."""
        model, mode, samples, tau, motion, window, calibrated, second, opacity, min_confidence = values
        method = MethodSettings(model, mode, round(samples), tau, bool(motion), round(window), bool(calibrated))
        return Settings(method, ViewSettings(second, opacity / 100, min_confidence / 100))


def add_controls(model: str) -> Controls:
    """Network, method and view; what is rarely changed is folded away."""
    import gradio as gr

    meta = model_meta(model)
    models = gr.Dropdown(model_choices(model), value=model, label="Model", elem_id="model")
    mode = gr.Radio(
        list(MODES), value=FIRST_MODE, label="Method", info="Smoothed: mean over recent frames.", elem_id="mode"
    )
    samples = gr.Slider(
        1, MOST_SAMPLES, SAMPLES, step=1, label="Samples per frame", info="Dropout passes that are averaged.",
        visible=False, elem_id="samples",
    )  # fmt: skip
    second = gr.Dropdown(
        second_choices(meta, FIRST_MODE), value="entropy", label="Second picture", elem_id="second"
    )  # fmt: skip
    opacity = gr.Slider(
        0, 100, 50, step=5, label="Overlay opacity %", info="Of the class colours.", elem_id="opacity"
    )  # fmt: skip
    min_confidence = gr.Slider(
        0, 95, 0, step=5, label="Confidence threshold %", info="Pixels below are grey.", elem_id="min-confidence"
    )  # fmt: skip
    with gr.Accordion("More settings", open=False, elem_id="more"):
        tau = gr.Slider(
            LEAST_TAU, MOST_TAU, TAU, step=0.25, label="Decay time tau",
            info="Of past frames in the mean, in frames.", elem_id="tau",
        )  # fmt: skip
        motion = gr.Checkbox(
            True, label="Motion compensation", info="The mean follows the optical flow.", elem_id="motion"
        )
        window = gr.Slider(
            0, MOST_WINDOW, 0, step=1, label="Window K", info="Past frames in the mean; 0: all (fastest).",
            elem_id="window",
        )  # fmt: skip
        calibrated = gr.Checkbox(
            True, label="Calibrated temperature", info=describe_temperature(meta, FIRST_MODE), elem_id="calibrated"
        )
    mode.change(
        lambda mode: (gr.update(visible=mode == "bnn"), *[gr.update(visible=mode.startswith("vq-"))] * 3),
        mode, [samples, tau, motion, window], show_progress="hidden", api_visibility="private",
    )  # fmt: skip
    motion.change(default_tau, motion, tau, show_progress="hidden", api_visibility="private")
    return Controls(models, mode, samples, tau, motion, window, calibrated, second, opacity, min_confidence)


def second_choices(meta: CheckpointMeta, mode: ModeName) -> list[tuple[str, Second]]:
    """The second pictures; that of set sizes says what it needs where the model lacks it."""
    try:
        conformal_threshold(meta, mode)
    except InputError:
        missing = " - needs `steadyseg calibrate`"
    else:
        missing = ""
    return [(name + (missing if second == "set size" else ""), second) for name, second in SECONDS]


def describe_temperature(meta: CheckpointMeta, mode: ModeName) -> str:
    """What the switch means for this model and method."""
    temperature = meta.temperature(mode)
    if temperature is None:
        return "None was fitted for this method: see steadyseg calibrate."
    return f"Logits are divided by {temperature:.2f}, fitted for this method."


def describe_controls(model: str, mode: ModeName) -> tuple[Any, Any]:
    """What `calibrated` and `second` say about another model or method."""
    import gradio as gr

    meta = model_meta(model)
    return gr.update(info=describe_temperature(meta, mode)), gr.update(choices=second_choices(meta, mode))
