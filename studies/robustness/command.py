"""The study `robustness`: runs its parts and writes the report and its JSON into a folder."""

from functools import partial
from typing import Any

from steadyseg.app.console import track
from steadyseg.studies.harness.report_folder import CORRUPTIONS, Report, require_checkpoints, require_extra
from steadyseg.studies.robustness.flags import RobustnessJob


def run_robustness(job: RobustnessJob) -> int:
    """Runs the studies, writes the report, and prints the summary and the report's place."""
    require_checkpoints(
        job.models, "a pretrained name or a .safetensors file", "attacks and dropout need the network itself"
    )
    from steadyseg.studies.robustness.report import markdown, summary
    from steadyseg.studies.robustness.studies import robustness  # after what can be refused without torch

    require_extra(CORRUPTIONS, "the study robustness")
    report = Report("robustness", job.models, job, job)

    def write_report(record: dict[str, Any]) -> None:
        report.write(record, partial(markdown, record))

    record = robustness(job, track, write_report)
    report.show([summary(record)], record["notes"])
    return 0
