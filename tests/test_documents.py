"""The committed documents say what the committed figures say: each is made again in memory and compared."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.commands import load
from core.errors import InputError
from studies.analysis.command import markdown as analysis_markdown
from studies.analysis.document import document as analysis_document
from studies.faults.document import document as reliability_document
from studies.harness.networks import digest_of, measured_networks
from studies.harness.pages import all_pages
from studies.harness.tables import with_tables
from studies.in_browser.document import document as browser_document
from studies.novelty.document import NO_ROADS, mean_over, worst
from studies.novelty.document import document as novelty_document
from studies.performance.document import MODELS
from studies.performance.document import document as performance_document
from studies.results.matrix import COMPARED, CONTROL, MEMBERS, rule_job
from studies.robustness.document import document as robustness_document
from studies.robustness.report import markdown
from studies.scale.document import document as scale_document

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


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_generated_tables(page: Path) -> None:
    text = page.read_text()
    assert with_tables(text, all_pages()[page]) == text, "python -m studies tables writes them again"


def test_an_unknown_table_is_an_error() -> None:
    text = "<!-- table one -->\nold\n<!-- end -->"
    assert with_tables(text, {"one": lambda: "new"}) == "<!-- table one -->\nnew\n<!-- end -->"
    with pytest.raises(InputError, match="no table is named one; there are two"):
        with_tables(text, {"two": str})


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


def test_scale() -> None:
    text = (DOCS / "scale" / "README.md").read_text()
    assert scale_document(DOCS / "scale") == text, "python -m studies.scale document makes it again"
