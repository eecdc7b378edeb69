"""The committed documents say what the committed figures say: each is made again in memory and compared."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.commands import load
from core.errors import InputError
from studies.ablations.document import document as ablations_document
from studies.analysis.command import markdown as analysis_markdown
from studies.analysis.document import document as analysis_document
from studies.classification.document import document as classification_document
from studies.faults.document import document as reliability_document
from studies.harness.document import fill
from studies.harness.networks import digest_of, measured_networks
from studies.in_browser.document import document as browser_document
from studies.novelty.document import NO_ROADS, mean_over, worst
from studies.novelty.document import document as novelty_document
from studies.performance.document import MODELS
from studies.performance.document import document as performance_document
from studies.results.cards import cards, updated
from studies.results.document import document as results_document
from studies.results.figures import figure
from studies.results.matrix import COMPARED, CONTROL, MEMBERS, rule_job
from studies.robustness.document import document as robustness_document
from studies.robustness.report import markdown
from studies.scale.document import document as scale_document
from studies.training.document import document as training_document

PROJECT = Path(__file__).parent.parent
DOCS = PROJECT / "docs" / "studies"


def pages() -> list[Path]:
    """Every page of Markdown that is read in the repository."""
    folders = ("app", "docs", "seg", "classification", "studies", "deploy")
    return [PROJECT / "README.md", *(page for folder in folders for page in sorted((PROJECT / folder).rglob("*.md")))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^()\s#]+)", re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL))
    home = (
        DOCS / page.parent.name if page.parent.parent.name == "studies" else page.parent
    )  # a text that a page is made of
    assert not [link for link in links if "://" not in link and not (home / link).exists()]


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return dict(json.loads((DOCS / "results" / "record.json").read_text()))


def pictures_of(text: str) -> dict[str, str]:
    """{title: file name}, in their order."""
    return dict(re.findall(r"!\[(.+?)\]\((.+?)\)", text))


def test_results(rows: dict[str, Any]) -> None:
    text = (DOCS / "results" / "README.md").read_text()
    assert results_document(rows, DOCS / "results", pictures_of(text)) == text, (
        "python -m studies.results makes it again"
    )


def test_classification() -> None:
    text = (DOCS / "classification" / "README.md").read_text()
    record = json.loads((DOCS / "classification" / "record.json").read_text())
    assert classification_document(record, pictures_of(text)) == text, "python -m studies.classification makes it again"


def test_robustness() -> None:
    text = (DOCS / "robustness" / "README.md").read_text()
    assert robustness_document(DOCS / "robustness") == text, "python -m studies.robustness makes it again"


@pytest.mark.parametrize("report", sorted((DOCS / "robustness").glob("*/report.md")), ids=lambda path: path.parent.name)
def test_robustness_reports(report: Path) -> None:
    plots = sorted(path.name for path in report.parent.glob("*.png"))
    record = json.loads(report.with_suffix(".json").read_text())
    assert markdown(record, record["command"], plots) == report.read_text()


def test_analysis() -> None:
    text = (DOCS / "analysis" / "README.md").read_text()
    assert analysis_document(DOCS / "analysis") == text, "python -m studies.analysis --document makes it again"


@pytest.mark.parametrize(
    "report", sorted((DOCS / "analysis").glob("*/*/report.json")), ids=lambda path: "-".join(path.parts[-3:-1])
)
def test_analysis_reports(report: Path) -> None:
    record, plots = json.loads(report.read_text()), sorted(path.name for path in report.parent.glob("*.png"))
    study = load(f"studies.analysis.{record['study']}:STUDY")
    found = (report.parent / "report.md").read_text()
    assert analysis_markdown(study, record, record["command"], plots) == found
    assert "worst.png" not in plots, "it would show pictures of the data set"


def test_training() -> None:
    if not (DOCS / "training" / "record.json").exists():
        pytest.skip("no row of the ablation is committed yet")
    record = json.loads((DOCS / "training" / "record.json").read_text())
    made = training_document(record)
    assert made == (DOCS / "training" / "README.md").read_text(), "python -m studies.training --document makes it again"


def test_ablations() -> None:
    record = json.loads((DOCS / "ablations" / "record.json").read_text())
    made = ablations_document(record)
    assert made == (DOCS / "ablations" / "README.md").read_text(), (
        "python -m studies.ablations --document makes it again"
    )


def test_novelty() -> None:
    record = json.loads((DOCS / "novelty" / "record.json").read_text())
    assert novelty_document(record) == (DOCS / "novelty" / "README.md").read_text(), (
        "python -m studies.novelty makes it again"
    )
    for name, found in record["networks"].items():
        weights = measured_networks()[name]["weights"] if name in measured_networks() else digest_of(name)
        assert found["weights"] == weights, f"{name}: python -m studies.novelty.collect measures it again"


def test_performance() -> None:
    text = (DOCS / "performance" / "README.md").read_text()
    assert performance_document(DOCS / "performance") == text, "python -m studies.performance --document makes it again"


def test_the_front_pages_speed() -> None:
    record, text = json.loads((DOCS / "performance" / "record.json").read_text()), (PROJECT / "README.md").read_text()
    for model in MODELS:
        rows = record[model]["rows"]
        published, along = (f"{rows[name]['frames_per_s']:.1f}" for name in ("vq_dnn", "vq_dnn_motion"))
        assert re.search(rf"`{model}` (makes )?{published} [^`]*and {along}[ ,]", text.replace("\n", " ")), model


def test_what_the_front_page_says_of_novelty() -> None:
    record, text = json.loads((DOCS / "novelty" / "record.json").read_text()), (PROJECT / "README.md").read_text()
    words, studied = " ".join(text.split()), ("camvid-realtime", "camvid-unet-s")
    for model in studied:
        found = record["networks"][model]
        before, after = (f"{100 * mean_over(found, way, 'ece'):.1f}" for way in ("none", "frame"))
        assert f"from {before} to {after} % (`{model}`)" in words
    aurocs = [f"{worst(record['networks'][model], NO_ROADS):.3f}" for model in studied]
    assert f"AUROC of {' and '.join(aurocs)} at least" in words


def test_reliability() -> None:
    made = reliability_document(DOCS / "reliability")
    assert made == (DOCS / "reliability" / "README.md").read_text(), (
        "python -m studies.faults.document makes its sections again"
    )
    record = json.loads((DOCS / "reliability" / "fuzzing.json").read_text())
    assert not any(row["found"] for row in record.values() if isinstance(row, dict) and "found" in row)


def test_browser() -> None:
    text = (DOCS / "browser" / "README.md").read_text()
    assert browser_document(DOCS / "browser") == text, "python -m studies.in_browser makes its measured part again"


@pytest.mark.parametrize("card", cards(), ids=lambda card: card.stem)
def test_cards_and_readme(card: Path) -> None:
    assert updated(card) == card.read_text(), "python -m studies.results.cards makes its tables again"


def test_rows_measured_twice_are_the_same_to_six_digits(rows: dict[str, Any]) -> None:
    """The rows of the default rule are measured on their own; those that other jobs have too must not differ."""
    for network in [*COMPARED, *MEMBERS[1:], CONTROL]:
        again, first = rows[rule_job(network)]["rows"]["changes"], rows[network.name]["rows"]["stream"]
        for method, row in again.items():
            for key in ("nll", "accuracy", "ece", "consistency"):
                assert row[key] == first[method][key], (network.name, method, key)


def test_performance_shows_every_row_of_the_benches(tmp_path: Path) -> None:
    bench = json.loads((DOCS / "results" / "throughput.json").read_text())
    page, results = tmp_path / "performance", tmp_path / "results"
    page.mkdir()
    results.mkdir()
    (results / "throughput.json").write_text(json.dumps(bench))
    assert "Not measured at this commit" in performance_document(page)
    (page / "record.json").write_text(json.dumps({model: bench | {"commit": "abc1234"} for model in MODELS}))
    text = performance_document(page)
    assert "Not measured at this commit" not in text and "commit abc1234" in text
    assert "| VQ-BNN, all maps | 60.1 | 63.4 | 12 | 60.1 | 63.4 | 12 |" in text
    assert "| with spatial smoothing / without | 0.944 (target 0.93) | 0.944 (target 0.93) |" in text
    assert "| VQ-DNN with all maps / the network alone | 0.934 (target 0.95, missed)" in text


SMALL = {
    "a-0": {"rows": {"stream": {"dnn": {"nll": 0.5, "ece": 0.04, "iou": [0.1] * 11}, "vq": {"nll": 0.4, "ece": 0.01}}}},
    "a-1": {"rows": {"stream": {"dnn": {"nll": 0.6, "ece": 0.05}, "vq": {"nll": 0.66, "ece": 0.02}}}},
    "b-0": {"rows": {"stream": {"dnn": {"nll": 1.0}}}},
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nll a-0/stream/dnn", "0.500"),
        ("ece a-0/stream/dnn", "4.0"),
        ("nll a-?/stream/dnn", "0.500 to 0.600"),
        ("nll *!a-0/stream/dnn", "0.600 to 1.000"),
        ("nll a-0/stream/dnn > =/=/vq", "-20.0 %"),
        ("ece a-0/stream/dnn > =/=/vq", "-3.0"),
        ("nll a-0/stream/dnn > b-0/=/=", "+100.0 %"),
        ("nll */stream/dnn > =/=/vq", "-20.0 to +10.0 %"),  # b-0 has no vq
        ("spread nll a-?/stream/dnn > =/=/vq", "-5.0 ± 21.2 %"),
        ("count<0 nll */stream/dnn > =/=/vq", "1 of 2"),
        ("count>0.045 ece */stream/dnn", "1 of 2"),
        ("iou.Pole a-?/stream/dnn", "10.0"),
    ],
)
def test_a_name_in_a_sentence_is_the_figure_of_its_rows(name: str, text: str) -> None:
    assert figure(SMALL, name) == text
    assert fill(f"It is\n{{{name}}} here.", lambda found: figure(SMALL, found)) == f"It is {text} here."


def test_a_name_that_meets_no_row_is_an_error() -> None:
    with pytest.raises(InputError, match="meets no measured row"):
        figure(SMALL, "nll c-0/stream/dnn")


def test_scale() -> None:
    text = (DOCS / "scale" / "README.md").read_text()
    assert scale_document(DOCS / "scale") == text, "python -m studies.scale document makes it again"
