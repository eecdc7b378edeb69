"""Records that no step makes: they need trainings, a browser or an idle machine."""

TRAIN = "its networks are trained first, 12 hours: `python -m studies.results train`; then"
IDLE = "times, which other weights of the same layers leave as they are; needs an idle machine:"
BY_HAND = {
    "results/networks.json:*": f"{TRAIN} `python -m studies.results`",
    "results/record.json:[pc][ap][pu]*": f"{TRAIN} `python -m studies.results`",
    "results/vector-scaling.json:paper-*": f"{TRAIN} `python -m studies.vector_scaling.measure`",
    "robustness/segmentation*": f"{TRAIN} `python -m studies.robustness`",
    "analysis/segmentation/*": f"{TRAIN} `python -m studies.analysis`",
    "novelty/record.json:networks/paper-*": f"{TRAIN} `python -m studies.novelty.collect`",
    "novelty/record.json:ensemble*": "the networks of the line above: `python -m studies.novelty`",
    "novelty/record.json:left_out*": "two trainings: `python -m studies.novelty.left_out`",
    "novelty/record.json:cost*": f"{IDLE} `python -m studies.novelty.cost`",
    "ablations/record.json:*": "36 trainings: `python -m studies.ablations`",
    "classification/record.json:*": "trainings: `python -m studies.classification --commands`",
    "training/record.json:*": "14 trainings: `python -m studies.training`",
    "transformers/record.json:*": "trainings: `python -m studies.transformers.train`; then `... .measure`",
    "transformers/*/report.json:*": "the networks of the line above: `python -m studies.transformers.inside`",
    "transformers/digests.json:*": "the same",
    "results/again.json:*": "trainings, whose settings are in its table: `python -m studies.results.again`",
    "labelling/pick.json:*": "trainings: `python -m studies.labelling.trainings`",
    "systems/record.json:segnet/*": "a training, whose command is in studies/systems/__main__.py",
    "systems/record.json:[dmo]*": "no included network: `python -m studies.systems`",
    "gating/record.json:*-street/*": "trainings, by presets of these names: `python -m studies.gating --street MODEL`",
    "cuts/record.json:*[!ey]/digest": "no network: `python -m studies.cuts.measure`",
    "results/throughput.json:*": f"{IDLE} `steadyseg bench`",
    "performance/record.json:*": f"{IDLE} `python -m studies.performance`",
    "scale/record.json:*": f"{IDLE} `python -m studies.scale`",
    "reliability/*": "an hour each of an idle machine, and a browser: studies/faults",
    "browser/record.json:*": "a browser and an idle machine: `python -m studies.in_browser`",
}
"""FILE:ENTRY in docs/studies, as patterns of fnmatch -> why, and the command."""
ALSO = "docs/page-*.jpg (the page, looked at), and every sentence of a page that has a figure: tests/test_documents.py"
