"""Records that no step makes: they need trainings, a browser or an idle machine."""

IDLE = "times, which other weights of the same layers leave as they are; needs an idle machine:"
VERSION_0_2 = "of a network of version 0.2, at commit b8d9ba43"
AT_COMMIT = "its code stands at the commit that its page names"
BY_HAND = {
    "systems/*": AT_COMMIT,
    "scale/*": AT_COMMIT,
    "reliability/*": AT_COMMIT,
    "results/vector-scaling.json:*": AT_COMMIT,
    "results/choice.json:*": "the command in it",
    "results/networks.json:*": AT_COMMIT,
    "results/record.json:*": AT_COMMIT,
    "robustness/[!cr]*": AT_COMMIT,
    "robustness/road-*": "the command in the report",
    "robustness/camvid-u*": AT_COMMIT,
    "robustness/camvid-[!u]*": "the command in the report",
    "robustness/classifiers*": "the command in the report; the cards of the classifiers show its clean pictures",
    "analysis/*": AT_COMMIT,
    "familiarity/expected.json:*": "the command in its page",
    "familiarity/record.json:networks/paper-*": AT_COMMIT,
    "familiarity/record.json:networks/camvid-r*": VERSION_0_2,
    "familiarity/record.json:streams/camvid-r*": VERSION_0_2,
    **{f"results/{name}.json:*": AT_COMMIT for name in ("protocol", "decay", "front")},
    "results/overconfidence.json:*": "`python -m steadyseg.studies.papers overconfidence`",
    "guide/record.json:camvid-[!u]*": VERSION_0_2,
    "guide/roads.json:*": "the command in its page",
    "results/every.json:*": "`python -m steadyseg.studies.results.every`",
    "results/carried.json:*": "`python -m steadyseg.studies.results.every`",
    "familiarity/record.json:regions/*": AT_COMMIT,
    "familiarity/record.json:classifiers/*": AT_COMMIT,
    "familiarity/record.json:left_out*": AT_COMMIT,
    "familiarity/record.json:passes*": AT_COMMIT,
    "familiarity/record.json:ensemble*": AT_COMMIT,
    "familiarity/record.json:cost*": AT_COMMIT,
    "ablations/*": AT_COMMIT,
    "classification/*": AT_COMMIT,
    "labelling/*": AT_COMMIT,
    "training/*": AT_COMMIT,
    "transformers/[!e]*": AT_COMMIT,
    "transformers/e*": "the command in it",
    "results/again.json:*": AT_COMMIT,
    **{
        f"results/{name}.json:*": "needs trainings: the command beside its table"
        for name in ("replica", "unseen-drive")
    },
    "gating/*": AT_COMMIT,
    "rates/*": AT_COMMIT,
    "cuts/*": AT_COMMIT,
    "results/throughput.json:*": AT_COMMIT,
    "performance/record.json:*": f"{IDLE} `python -m steadyseg.studies.performance`",
    "performance/every.json:*": f"{IDLE} `steadyseg bench NETWORK`",
    "browser/*": AT_COMMIT,
}
"""FILE:ENTRY in docs/records, as patterns of fnmatch -> why, and the command."""
ALSO = (
    "docs/page-*.jpg (`docs/page_pictures.py`), and every sentence of a page that has a figure: tests/test_documents.py"
)
