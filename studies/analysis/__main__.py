"""Studies of networks: how robust they are, what their feature maps hold, and the loss around their weights.

python -m steadyseg.studies.analysis STUDY MODEL ... --data DATA
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.table import Table

from steadyseg.app import cli
from steadyseg.app.commands import Command, load
from steadyseg.studies.analysis.flags import StudyJob

FORM = ".4g"
"""Numbers of a report: four significant digits."""
PROGRAM = "python -m steadyseg.studies.analysis"
STUDIES = {
    "fourier": "How much of each spatial frequency is in the feature maps, block by block.",
    "variance": "How feature maps vary over positions and over dropout draws, before and after smoothing.",
    "hessian": "Eigenvalues of the loss's Hessian: the largest of every mini-batch, and the density of all.",
    "landscape": "Loss and accuracy on a plane through the weights.",
    "lesion": "What is lost without one convolution, attention or MLP block, block or smoothing layer at a time.",
    "similarity": "How alike layers are (CKA), of one network or several, and how far maps correlate in space.",
    "reliability": "How honest confidence is by class, distance from a boundary, region size and familiarity.",
}
ROBUSTNESS = Command(
    "Study how networks stand corruptions, small changes, attacks and other pictures; several are compared.",
    "steadyseg.studies.robustness.flags:RobustnessJob",
    "steadyseg.studies.robustness.command:run_robustness",
)
ANALYSES = Command(
    "Study networks: how robust they are, what their feature maps hold, and the loss around their weights.",
    kinds={"robustness": ROBUSTNESS}
    | {
        name: Command(
            summary,
            f"steadyseg.studies.analysis.flags:{name.capitalize()}Job",
            "steadyseg.studies.analysis.__main__:run_study",
        )
        for name, summary in STUDIES.items()
    },
)


def run_study(job: StudyJob) -> int:
    """Runs the study that the job names, prints its tables and writes its report."""
    from steadyseg.studies.harness.report_folder import Report, require_checkpoints  # torch, which --help does without

    require_checkpoints(
        job.options.models, "a pretrained name, a .safetensors file or timm:NAME", "a study looks inside the network"
    )
    from steadyseg.studies.analysis.study import Study, run  # after what can be refused without torch

    report = Report(job.study, job.options.models, job.options, job)
    study: Study = load(f"steadyseg.studies.analysis.{job.study}:STUDY")
    record = run(study, job, keep=report.write_json)
    report.write(record, partial(markdown, study, record))
    report.show([screen_table(*table) for table in study.tables(record["results"])], record["notes"])
    return 0


def screen_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    from steadyseg.studies.harness.tables import figure

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(figure(value, FORM) for value in row))
    return table


def markdown(study: Any, record: dict[str, Any], command: str) -> str:
    """The whole report."""
    from steadyseg.studies.harness.report_folder import report_tables
    from steadyseg.studies.harness.tables import bullets, paragraphs

    models = ", ".join(model["model"] for model in record["models"])
    memory = f", at most {record['peak_memory_mb']} MB of memory" if record["peak_memory_mb"] else ""
    parts = [
        f"# {study.title}: {models}",
        f"`{command}`",
        f"{record['pictures']} of {record['split_pictures']} pictures of {record['data']} {record['split']} (list "
        f"{record['list_hash']}), seed {record['seed']}, {record['device']}; {record['seconds']:.0f} s, "
        f"{record['cpu_seconds']:.0f} s of processor time{memory}.",
        study.about,
        bullets(record["notes"]),
        *report_tables(study.tables(record["results"]), FORM),
    ]
    return paragraphs(parts)


def main(arguments: list[str] | None = None) -> int:
    return cli.main(arguments, ANALYSES, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
