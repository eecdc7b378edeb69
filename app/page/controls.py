"""The controls beside the tabs, in plain words. The browser sends their values with every frame; nothing restarts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.page.settings import (
    FIRST_MODE,
    LEAST_TAU,
    LOOKS,
    MODES,
    MOST_LOOKS,
    MOST_TAU,
    MOST_WINDOW,
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
from core.method import MethodOptions, ModeName, default_tau

SET_JS = "(...values) => { window.steadyseg?.set(...values); return []; }"
"""Runs in the browser alone: the next frame carries the new values."""
NO_TEMPERATURE = "this model has no temperature for this method: steadyseg calibrate makes one"


@dataclass(frozen=True)
class Controls:
    """Gradio components. Their order in `values` is the order of the arguments of `set` in app/web/live.js."""

    model: Any
    mode: Any
    looks: Any
    tau: Any
    motion: Any
    window: Any
    calibrated: Any
    second: Any
    strength: Any
    abstain: Any

    @property
    def values(self) -> list[Any]:
        return [
            self.model, self.mode, self.looks, self.tau, self.motion, self.window, self.calibrated, self.second, self.strength,
            self.abstain,
        ]  # fmt: skip

    @staticmethod
    def settings(values: Sequence[Any]) -> Settings:
        """What Gradio hands to a function for `values`, as the file tab needs it."""
        model, mode, looks, tau, motion, window, calibrated, second, strength, abstain = values
        method = MethodSettings(model, mode, round(looks), tau, bool(motion), round(window), bool(calibrated))
        return Settings(method, ViewSettings(second, strength / 100, abstain / 100))


def add_controls(model: str) -> Controls:
    """Which network looks and how, and what is drawn of it."""
    import gradio as gr

    meta = model_meta(model)
    models = gr.Dropdown(model_choices(model), value=model, label="Model", elem_id="model")
    mode = gr.Radio(list(MODES), value=FIRST_MODE, label="Method", elem_id="mode")
    looks = gr.Slider(1, MOST_LOOKS, LOOKS, step=1, label="Looks a frame", visible=False, elem_id="looks")
    tau = gr.Slider(
        LEAST_TAU, MOST_TAU, TAU, step=0.25, label="Memory in frames (tau)", elem_id="tau"
    )  # fmt: skip
    motion = gr.Checkbox(True, label="Memory follows what moves", elem_id="motion")
    window = gr.Slider(
        0, MOST_WINDOW, 0, step=1, label="Memory ends after (K)", info="frames; 0: never; others run slower",
        elem_id="window",
    )  # fmt: skip
    calibrated = gr.Checkbox(
        True, label="Calibrated confidence", info=calibration_info(meta, FIRST_MODE), elem_id="calibrated"
    )  # fmt: skip
    second = gr.Dropdown(
        second_choices(meta, FIRST_MODE), value="entropy", label="The second picture shows", elem_id="second"
    )  # fmt: skip
    strength = gr.Slider(0, 100, 50, step=5, label="Strength of the colours, %", elem_id="strength")
    abstain = gr.Slider(0, 95, 0, step=5, label="Hide what is less sure than, %", elem_id="abstain")
    mode.change(
        lambda mode: (gr.update(visible=mode == "bnn"), *[gr.update(visible=mode.startswith("vq-"))] * 3),
        mode, [looks, tau, motion, window], show_progress="hidden", api_visibility="private",
    )  # fmt: skip
    motion.change(default_tau, motion, tau, show_progress="hidden", api_visibility="private")
    return Controls(models, mode, looks, tau, motion, window, calibrated, second, strength, abstain)


def second_choices(meta: CheckpointMeta, mode: ModeName) -> list[tuple[str, Second]]:
    """The second pictures; that of set sizes says what it needs where the model lacks it."""
    try:
        conformal_threshold(meta, MethodOptions(mode).resolve(meta))
    except InputError:
        missing = " - needs `steadyseg calibrate`"
    else:
        missing = ""
    return [(name + (missing if second == "set size" else ""), second) for name, second in SECONDS]


def calibration_info(meta: CheckpointMeta, mode: ModeName) -> str:
    """What the switch means for this model and method."""
    method = MethodOptions(mode).resolve(meta)
    return f"logits divided by the fitted temperature {method.temperature:.2f}" if method.calibrated else NO_TEMPERATURE


def describe_controls(model: str, mode: ModeName) -> tuple[Any, Any]:
    """What `calibrated` and `second` say about another model or method."""
    import gradio as gr

    meta = model_meta(model)
    return gr.update(info=calibration_info(meta, mode)), gr.update(choices=second_choices(meta, mode))
