"""The site of the documents: docs/site.py builds it, and finds what is broken."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import steadyseg

PROJECT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_of_documents", PROJECT / "docs" / "site.py")
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module


def test_the_reference_has_every_public_name() -> None:
    named = re.findall(r"^::: (\S+)\.(\w+)$", (PROJECT / "docs" / "reference" / "api.md").read_text(), re.MULTILINE)
    assert sorted((name, module) for module, name in named) == sorted(steadyseg._MODULES.items())


def test_a_link_to_no_file_and_to_no_heading_is_found(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#here">b</a><a href="https://x.org/none">x</a>')
    (tmp_path / "b.html").write_text('<p id="here">B</p><a href="a.html#gone">a</a><img src="none.png">')
    assert site.broken_links(tmp_path) == ["b.html: a.html#gone", "b.html: none.png"]


@pytest.mark.long
def test_the_site_has_no_broken_link_and_every_signature(site: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="make setup installs the extra docs")
    assert site.build(tmp_path / "docs") == []
    built = tmp_path / "docs" / "site"
    reference = (built / "docs" / "reference" / "api.html").read_text()
    assert not [name for name, module in steadyseg._MODULES.items() if f'id="{module}.{name}"' not in reference]
    assert "(H, W) uint8" in reference and (built / "docs" / "film.webp").stat().st_size
    assert "familiarity" in next(built.rglob("search*.json")).read_text()
