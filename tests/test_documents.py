"""The committed documents say what the committed figures say."""

import re
from pathlib import Path

import pytest

from steadyseg.core.errors import InputError
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.core.model.model import REPLACED
from steadyseg.seg.pretrained import find_checkpoint
from steadyseg.studies.guide.measure import threshold_record
from steadyseg.studies.guide.roads import THRESHOLDS
from steadyseg.studies.harness.networks import digest_of
from steadyseg.studies.harness.pages import STUDIES, all_pages, pages_of, tables_of
from steadyseg.studies.harness.tables import read_record, with_tables
from steadyseg.studies.performance.tables import format_ratio
from tests.prose import unheld_numbers

PROJECT = Path(__file__).parent.parent
DOCS = PROJECT / "docs" / "records"
SETTINGS = ("95 % interval", "openvino 2026.4.1", "tau 1.25", "2048 MB more")
"""Numbers with a point or a unit that nobody here measured: settings, versions, published figures."""
EXPLAINED = [page for page in sorted((PROJECT / "docs" / "explanation").glob("*.md")) if page.stem != "methods"]
"""Explanations of what was measured; the numbers of the methods are constants of the code."""
WITHOUT_FIGURES = [
    page
    for page in (
        PROJECT / "docs" / "tutorial.md",
        *sorted((PROJECT / "docs").glob("how-to/*.md")),
        *sorted((PROJECT / "docs").glob("reference/*.md")),
    )
    if page.stem not in ("train", "security")
]
"""Pages of tasks and facts without measurements; tables of `train` have settings, of `security` limits."""
TABLES = all_pages()
FRONT = " ".join((PROJECT / "README.md").read_text().split())


def pages() -> list[Path]:
    """Every page of Markdown that is read in the repository."""
    folders = ("app", "docs", "seg", "classification", "studies", "deploy")
    return [PROJECT / "README.md", *(page for folder in folders for page in sorted((PROJECT / folder).rglob("*.md")))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^()\s#]+)", re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL))
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


def test_the_architecture_names_files_and_folders_that_exist() -> None:
    page = (PROJECT / "docs" / "explanation" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|/[a-z_]+\.py))`", page))
    assert len(named) > 30 and not [name for name in named if not (PROJECT / name).exists()]


@pytest.mark.parametrize("page", TABLES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_generated_tables(page: Path) -> None:
    text, tables = page.read_text(), TABLES[page]
    assert with_tables(text, tables) == text, "python -m steadyseg.studies tables writes them again"


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_of_a_study_is_on_one_of_its_pages(name: str) -> None:
    shown = [found for page in pages_of(name) for found in re.findall(r"<!-- table (\S+) -->", page.read_text())]
    assert sorted(shown) == sorted(tables_of(name))


def test_an_unknown_table_is_an_error() -> None:
    text = "<!-- table one -->\nold\n<!-- end -->"
    assert with_tables(text, {"one": lambda: "new"}) == "<!-- table one -->\nnew\n<!-- end -->"
    with pytest.raises(InputError, match="no table is named one; there are two"):
        with_tables(text, {"two": str})


@pytest.mark.parametrize("page", sorted(DOCS.glob("*/*.md")), ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_record_begins_with_its_verdict_and_ends_with_what_made_it(page: Path) -> None:
    title, verdict, *_, last = page.read_text().rstrip().split("\n\n")
    assert title.startswith("# ") and verdict.startswith("**Verdict.** ")
    assert re.search(
        rf"studies/{page.parent.name}/tables\.py|at commit [0-9a-f]{{7}}: `git checkout", last.splitlines()[-1]
    )


@pytest.mark.parametrize(
    "page",
    [*(page for page in sorted(DOCS.glob("*/*.md")) if re.search("<!-- (table|kept) ", page.read_text())), *EXPLAINED],
    ids=lambda page: f"{page.parent.name}-{page.stem}",
)
def test_measured_numbers_of_the_prose_are_in_tables(page: Path) -> None:
    assert not unheld_numbers(page.read_text(), SETTINGS, page.parent if page in EXPLAINED else None)


@pytest.mark.parametrize(
    "page",
    sorted(
        {*DOCS.glob("*/README.md")} - {DOCS / name / "README.md" for name in STUDIES}
        | {page for page in DOCS.glob("*/*.md") if "<!-- kept " in page.read_text()}
    ),
    ids=str,
)
def test_a_page_or_a_table_without_code_says_at_which_commit_it_stands(page: Path) -> None:
    last = page.read_text().rstrip().splitlines()[-1]
    assert re.search(
        r"at commit [0-9a-f]{7}: `git checkout [0-9a-f]{7} && make setup && .*python -m (steadyseg\.)?studies\.", last
    )


def test_a_number_that_no_table_holds_is_found() -> None:
    table = "<!-- table one -->\n| NLL | accuracy | frames |\n| 0.4035 | 0.853 | 30 |\n<!-- end -->"
    page = f"0.40, 85.3 % and -0.404, `0.7`, [a](b-0.7), 360x480, ResNet-18, 25 frames\n\n## Section\n0.91\n{table}"
    assert unheld_numbers(page, ()) == ["0.91"]
    assert unheld_numbers(page.replace("0.91", "86 % of 100"), ()) == ["86 % of 100"]
    assert not unheld_numbers(page, ("0.91",))
    published = "80.1 [in the protocol](results/protocol.md)"
    assert unheld_numbers(published, ()) and not unheld_numbers(published, (), DOCS)
    assert unheld_numbers(published.replace("80.1", "80.3"), (), DOCS) == ["80.3 [in the protocol"]


def test_familiarity_and_corruptions_are_of_the_included_weights() -> None:
    trained = read_record("results", "networks.json")
    for name, found in read_record("familiarity")["networks"].items():
        if name in REPLACED:  # a record of version 0.2, as its page says
            continue
        weights = trained[name]["weights"] if name in trained else digest_of(name)
        assert found["weights"] == weights, f"{name}: python -m steadyseg.studies.familiarity.collect measures it again"


def test_networks_carry_the_thresholds_of_the_guide() -> None:
    for name, part in read_record("guide").items():
        if name in REPLACED:
            continue
        meta = read_meta(find_checkpoint(name))
        assert {"average": "arithmetic", **meta.thresholds} == threshold_record(
            MethodOptions().resolve(meta), part["rows"]
        ), f"{name}: python -m steadyseg.studies.guide.measure writes them"


@pytest.mark.parametrize("record", ["familiarity/expected", "guide/roads"])
def test_figures_of_other_roads_are_of_the_included_weights(record: str) -> None:
    for name, found in read_record(*f"{record}.json".split("/")).items():
        assert found["digest"] == digest_of(name), f"{name}: python -m steadyseg.studies.{record.replace('/', '.')}"


def test_the_first_sentence_of_the_front_page_is_of_the_record() -> None:
    found = read_record("guide", "roads.json")["road-realtime"]["rows"]
    place = THRESHOLDS.index(0.88)
    shares = [(100 * one["right"][place], 100 * one["kept"][place]) for one in found.values()]
    test, _, india, facades = shares
    assert f"{test[0]:.1f} % are right on CamVid's test images, and {india[0]:.1f} % on Indian" in FRONT
    assert f"These are {test[1]:.0f} and {india[1]:.0f} % of all pixels." in FRONT
    assert f"{facades[0]:.1f} % are right, of {facades[1]:.0f} % of the pixels" in FRONT


def test_the_speeds_of_the_front_page_are_of_the_record() -> None:
    def rate(model: str, processor: str) -> str:
        return f"{formats[model]['processors'][processor]['int8']['vq_dnn_motion']:.0f}"

    formats, processors = read_record("performance")["formats"], ("AVX-512 with bf16", "held to AVX2")
    default, mobile = ([rate(model, one) for one in processors] for model in ("camvid-realtime", "camvid-mobile"))
    assert f"{default[0]} (AVX-512) and {default[1]} (AVX2) with the default's layers" in FRONT
    assert f"{mobile[0]} and {mobile[1]} with `road-mobile`'s" in FRONT


FORMATS = "CVAT for images 1.1", "CVAT for video 1.1", "bf16 from 8.0, fp16 from 7.0"
VERSIONS = (
    "5.24: SegFormer",
    "8.4.190: YOLO",
    "0.6: U-Net",
    "0.29: LR-ASPP",
    "timm 1.0",
    "(0.5 for Inception",
    "at 0.5, or logits",
    "0.00392157",
)


@pytest.mark.parametrize("page", WITHOUT_FIGURES, ids=lambda page: page.stem)
def test_tables_of_how_to_and_reference_pages_have_no_measured_numbers(page: Path) -> None:
    """Measurements have records. What stays are settings, limits and versions of formats and libraries."""
    rows = "\n\n".join(line for line in page.read_text().splitlines() if line.startswith("|"))
    assert not unheld_numbers(rows, (*SETTINGS, *FORMATS, *VERSIONS))


def test_no_damaged_file_found_anything() -> None:
    record = read_record("reliability", "fuzzing.json")
    assert not any(row["found"] for row in record.values() if isinstance(row, dict) and "found" in row)


def test_a_missed_target_is_marked() -> None:
    assert format_ratio({"value": 0.934, "target": 0.95}) == "0.934 (target 0.95, missed)"
    assert format_ratio({"value": 0.944, "target": 0.93}) == "0.944 (target 0.93)"
    assert (format_ratio({"value": 0.8, "target": None}), format_ratio(None)) == ("0.800", "-")
