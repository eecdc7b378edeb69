"""The File tab: a video, an image or the built-in street as input; progress, the result to play, and downloads."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyseg.app.page.file.file_job import STREET, Progress, Result, segment_file
from steadyseg.app.page.flags import PageOptions
from steadyseg.app.page.parts.controls import QUIET, Controls
from steadyseg.app.page.parts.network_pool import NetworkPool
from steadyseg.app.page.parts.report import metrics_html, report_html
from steadyseg.app.page.parts.sessions import Sessions
from steadyseg.core.errors import InputError
from steadyseg.core.options import Every

if TYPE_CHECKING:
    import gradio as gr

INTRO = (
    "<p>The result is a video of the segmentation and the second picture side by side. The labels of the synthetic "
    "street are known, so its accuracy and calibration are measured while it plays.</p>"
)
RUNS_ON: dict[str, int | str] = {
    "every frame": 1,
    "every 2nd frame": 2,
    "every 3rd frame": 3,
    "frames that need it (auto)": "auto",
}
"""Choices of the frames that the network runs on; the maps of the others are carried along the motion."""
Changes = dict[Any, Any]
"""Changes of the page, by component."""


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
            every = gr.Dropdown(list(RUNS_ON.items()), value=1, label="Network on", elem_id="every")
            start = gr.Button("Segment the file", variant="primary", elem_id="start")
            street = gr.Button("Try the synthetic street", elem_id="street")
            stop = gr.Button("Stop", variant="stop", visible=False, elem_id="stop")
            progress = gr.HTML("", elem_id="progress", elem_classes="status")
        with gr.Column(scale=3, min_width=300):
            result = ResultColumn(stop, progress)

    def run(request: gr.Request, spec: str | None, wants_masks: bool, every: Every, *values: Any) -> Iterator[Changes]:
        session, settings = sessions.find(str(request.session_hash)), controls.settings(values)

        def reason() -> str:
            return session.stop_reason

        with session.job() as folder:
            if spec is None:
                raise InputError("no file is chosen; upload a video or an image, or try the synthetic street")
            if spec != STREET:
                spec = str(session.take(spec, folder))
            for step in segment_file(spec, settings, folder, pool, reason, keep_masks=wants_masks, every=every):
                yield result.progressed(step) if isinstance(step, Progress) else result.finished(step)
            if spec != STREET:
                Path(spec).unlink()  # this job's own copy

    def run_street(request: gr.Request, *values: Any) -> Iterator[Changes]:
        yield from run(request, STREET, *values)

    def ask_to_stop(request: gr.Request) -> None:
        sessions.find(str(request.session_hash)).stop_reason = "stopped"

    inputs, common = [keep_masks, every, *controls.values], {"concurrency_id": "file", **QUIET}
    started = start.click(run, [upload, *inputs], result.places, **common)
    toured = street.click(run_street, inputs, result.places, **common)
    for job in (started, toured):
        job.failure(lambda: (gr.update(visible=False), "", ""), None, [stop, progress, result.preview], **QUIET)
    stop.click(ask_to_stop, queue=False, **QUIET)


class ResultColumn:
    """The components that a job changes."""

    def __init__(self, stop: "gr.Button", progress: "gr.HTML") -> None:
        """Adds all components of the result; `stop` and `progress` stand beside the inputs."""
        import gradio as gr

        self.stop, self.progress, title = stop, progress, "Segmentation and uncertainty"
        self.preview = gr.HTML(INTRO, js_on_load=None, elem_id="preview", elem_classes="preview")
        self.video = gr.Video(label=title, show_label=False, height=330, autoplay=True, visible=False, elem_id="video")
        self.picture = gr.Image(label=title, show_label=False, visible=False, height=330, elem_id="picture")
        with gr.Row():
            self.media = gr.DownloadButton("Video", visible=False, elem_id="download-result")
            self.masks = gr.DownloadButton("Masks (zip)", visible=False, elem_id="download-masks")
            self.figures = gr.DownloadButton("Report (JSON)", visible=False, elem_id="download-report")
        self.learned = gr.HTML("", js_on_load=None, elem_id="learned")
        self.report = gr.HTML("", js_on_load=None, elem_id="report")

    @property
    def places(self) -> list[Any]:
        """All components."""
        return list(vars(self).values())

    def progressed(self, step: Progress) -> Changes:
        """The changes for the progress of a job; at its start nothing of an earlier job stays."""
        if step.done:
            image = f"<img src='{step.preview}' alt='the newest frame'>" if step.preview else ""
            return {self.progress: step.html(), self.preview: image, self.learned: metrics_html(step.metrics)}
        empty = dict.fromkeys((self.preview, self.learned, self.report), "")
        return {self.progress: step.html(), **empty, **self._files(None)}

    def finished(self, result: Result) -> Changes:
        """The changes for the end of a job."""
        return {
            self.progress: f"{result.stopped}: this is what was done until then" if result.stopped else "done",
            self.preview: "",
            self.learned: metrics_html(result.metrics),
            self.report: report_html(result.record),
            **self._files(result),
        }

    def _files(self, result: Result | None) -> Changes:
        """Shows the files of a result and hides the components of other files. Without a result the job can be
        stopped."""
        import gradio as gr

        video, picture = (result.video, result.picture) if result else (None, None)
        masks, report = (result.masks, result.report) if result else (None, None)
        files = {self.video: video, self.picture: picture, self.masks: masks, self.figures: report}
        changes = {place: gr.update(value=file, visible=file is not None) for place, file in files.items()}
        label = "Picture" if picture else "Video"
        media = gr.update(value=video or picture, label=label, visible=result is not None)
        return {**changes, self.media: media, self.stop: gr.update(visible=result is None)}
