"""The site of the documents: `make docs`, or `python docs/site.py [FOLDER]` with Zensical and mkdocstrings installed.

Pages keep their places in the repository, so their links hold: each Markdown file and each file that a page links to is
copied below build/docs/pages, and the site is build/docs/site. A linked folder gets a list of its files.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PROJECT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "seg/checkpoints", "classification/checkpoints")
PAGES += ("app/in_browser/README.md", "demos/networks/README.md")
LINK = re.compile(r"(?<=\]\()([^()\s#]+)((?:#[^()\s]*)?\))")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def pages() -> Iterator[Path]:
    """The Markdown files of the site, as paths in the repository."""
    for name in PAGES:
        found = PROJECT / name
        yield from sorted(path.relative_to(PROJECT) for path in (found.rglob("*.md") if found.is_dir() else [found]))


def copy(page: Path, target: Path) -> None:
    """Copies a page, and the files and lists of the folders that it links to."""

    def follow(link: re.Match[str]) -> str:
        path, end = link.groups()
        if "://" in path:
            return link[0]
        linked = Path(os.path.normpath(page.parent / path))
        if (PROJECT / linked).is_dir():
            return f"{os.path.relpath(list_folder(linked, target), page.parent)}{end}"
        if linked.suffix != ".md" and (PROJECT / linked).exists():  # else the link is found broken below
            place(PROJECT / linked, target / linked)
        return f"{'index.md' if linked == Path('README.md') else path}{end}"

    text, kept = (PROJECT / page).read_text(), list[str]()
    hidden = CODE.sub(lambda code: (kept.append(code[0]), f"\0{len(kept) - 1}\0")[1], text)
    followed = re.sub("\0(\\d+)\0", lambda mark: kept[int(mark[1])], LINK.sub(follow, hidden))
    (written := target / ("index.md" if page == Path("README.md") else page)).parent.mkdir(parents=True, exist_ok=True)
    written.write_text(followed)


def place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def list_folder(folder: Path, target: Path) -> Path:
    """Writes the page of a folder, its README.md or a list of its files, and copies these; returns its path."""
    if (PROJECT / folder / "README.md").exists():
        return folder / "README.md"
    page, lines = folder / "index.md", [f"# {folder}", ""]
    for path in sorted((PROJECT / folder).rglob("*")):
        name = path.relative_to(PROJECT / folder)
        if path.suffix in (".md", ".json", ".png", ".py", ".ipynb") and "__pycache__" not in name.parts:
            lines.append(f"- [{name}]({name})")
            if path.suffix != ".md":
                place(path, target / folder / name)
    (target / page).parent.mkdir(parents=True, exist_ok=True)
    (target / page).write_text("\n".join([*lines, ""]))
    return page


class Anchors(HTMLParser):
    """The ids of a page of HTML, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links = set[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {found[key] or "" for key in ("id", "name") if key in found}
        self.links += [found[key] or "" for key in ("href", "src") if key in found and tag not in ("base", "link")]


def broken_links(site: Path) -> list[str]:
    """Links to a file or heading that the site lacks, as PAGE: LINK."""
    read = {path.resolve(): Anchors(path.read_text()) for path in site.rglob("*.html")}
    broken = []
    for page, found in read.items():
        for link in found.links:
            url = urlsplit(link)
            if url.scheme or url.netloc or page.name == "404.html":
                continue
            path = (page.parent / unquote(url.path)).resolve() if url.path else page
            path = path / "index.html" if path.is_dir() else path
            lacks = path in read and url.fragment and unquote(url.fragment) not in read[path].ids
            if not path.exists() or (lacks and url.fragment != "__top"):
                broken.append(f"{page.relative_to(site.resolve())}: {link}")
    return sorted(set(broken))


def build(folder: Path) -> list[str]:
    """Builds the site in FOLDER/site and returns its broken links and the references that mkdocstrings did not find."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        copy(page, folder / "pages")
    settings = (PROJECT / "docs" / "zensical.toml").read_text().replace('"../.."', f'"{PROJECT}"')
    (folder / "zensical.toml").write_text(settings)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    lost = [
        line for line in done.stdout.splitlines() if line.startswith(("griffe:", "mkdocstrings:")) or "ERROR" in line
    ]
    return [
        *lost,
        *([] if done.returncode == 0 else ["zensical build --strict failed"]),
        *broken_links(folder / "site"),
    ]


if __name__ == "__main__":
    wrong = build(Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "build" / "docs")
    print("\n".join(wrong) or "no broken link")
    raise SystemExit(bool(wrong))
