"""The File tab: a video, an image or the built-in street as input; progress, the result to play, and downloads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steadyseg.app.page.file.file_job import STREET, Progress, Result, segment_file
from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.parts.controls import QUIET, Controls
from steadyseg.app.page.parts.network_pool import NetworkPool
from steadyseg.app.page.parts.report import metrics_html, report_html
from steadyseg.app.page.parts.sessions import Session, Sessions
from steadyseg.app.page.parts.settings import Settings
from steadyseg.core.errors import InputError

INTRO = (
    "<p>The result is a video of the segmentation and the second picture side by side. The labels of the procedural "
    "street are known, so its accuracy and calibration are measured while it plays.</p>"
)


def add_file_tab(sessions: Sessions, controls: Controls, options: PageOptions, pool: NetworkPool) -> None:
    """Adds the inputs on the left and the result on the right."""
    import gradio as gr

    with gr.Row():
        with gr.Column(scale=1, min_width=250):
            upload = gr.File(
                label=f"Video or image, up to {options.max_upload_mb} MB",
                file_types=["video", "image"],
                height=150,
                elem_id="upload",
            )
            keep_masks = gr.Checkbox(False, label="Masks too (PNGs in a zip)", elem_id="keep-masks")
            start = gr.Button("Segment the file", variant="primary", elem_id="start")
            street = gr.Button("Try the procedural street", elem_id="street")
            stop = gr.Button("Stop", variant="stop", visible=False, elem_id="stop")
            progress = gr.HTML("", elem_id="progress", elem_classes="status")
        with gr.Column(scale=3, min_width=300):
            preview = gr.HTML(INTRO, js_on_load=None, elem_id="preview", elem_classes="preview")
            video = gr.Video(
                label="Segmentation and uncertainty", height=330, autoplay=True, visible=False, elem_id="video"
            )
            picture = gr.Image(label="Segmentation and uncertainty", visible=False, height=330, elem_id="picture")
            timeline = gr.HTML("", js_on_load=None, elem_id="timeline")
            with gr.Row():
                media = gr.DownloadButton("Video", visible=False, elem_id="download-result")
                masks = gr.DownloadButton("Masks (zip)", visible=False, elem_id="download-masks")
                figures = gr.DownloadButton("Report (JSON)", visible=False, elem_id="download-report")
            learned = gr.HTML("", js_on_load=None, elem_id="learned")
            report = gr.HTML("", js_on_load=None, elem_id="report")

    def shown(step: Progress | Result) -> dict[Any, Any]:
        """The changes of the page for one step of a job."""
        if isinstance(step, Progress):
            if step.done:
                image = f"<img src='{step.preview}' alt='the newest frame'>" if step.preview else ""
                return {progress: step.html(), preview: image, learned: metrics_html(step.metrics)}
            hidden = gr.update(visible=False)
            return {
                progress: step.html(),
                preview: "",
                learned: "",
                timeline: "",
                report: "",
                media: hidden,
                masks: hidden,
                figures: hidden,
                video: gr.update(value=None, visible=False),
                picture: gr.update(value=None, visible=False),
                stop: gr.update(visible=True),
            }
        return {
            progress: f"{step.stopped}: this is what was done until then" if step.stopped else "done",
            stop: gr.update(visible=False),
            preview: "",
            video: gr.update(value=step.video, visible=step.video is not None),
            picture: gr.update(value=step.picture, visible=step.picture is not None),
            learned: metrics_html(step.metrics),
            timeline: step.timeline,
            report: report_html(step.record),
            media: gr.update(
                value=step.video or step.picture, label="Video" if step.video else "Picture", visible=True
            ),
            masks: gr.update(value=step.masks, visible=step.masks is not None),
            figures: gr.update(value=step.report, visible=True),
        }

    def run(session: Session, spec: str | None, settings: Settings, wants_masks: bool) -> Iterator[dict[Any, Any]]:
        with session.job() as folder:
            if spec is None:
                raise InputError("no file is chosen; upload a video or an image, or try the procedural street")
            if spec != STREET:
                spec = str(session.take(spec, folder))
            for step in segment_file(spec, settings, folder, pool, lambda: session.stop_reason, keep_masks=wants_masks):
                yield shown(step)
            if spec != STREET:
                Path(spec).unlink()  # this job's own copy

    def run_upload(request: gr.Request, spec: str | None, wants_masks: bool, *values: Any) -> Iterator[dict[Any, Any]]:
        yield from run(sessions.find(str(request.session_hash)), spec, controls.settings(values), wants_masks)

    def run_street(request: gr.Request, wants_masks: bool, *values: Any) -> Iterator[dict[Any, Any]]:
        yield from run(sessions.find(str(request.session_hash)), STREET, controls.settings(values), wants_masks)

    def ask_to_stop(request: gr.Request) -> None:
        sessions.find(str(request.session_hash)).stop_reason = "stopped"

    outputs = [progress, stop, preview, video, picture, learned, timeline, report, media, masks, figures]
    common = {"concurrency_id": "file", **QUIET}
    started = start.click(run_upload, [upload, keep_masks, *controls.values], outputs, **common)
    toured = street.click(run_street, [keep_masks, *controls.values], outputs, **common)
    for job in (started, toured):
        job.failure(lambda: (gr.update(visible=False), "", ""), None, [stop, progress, preview], **QUIET)
    stop.click(ask_to_stop, queue=False, **QUIET)
