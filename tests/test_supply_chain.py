"""The locks hold what pyproject.toml asks for, by hash, and the container is built from them."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parent.parent
LOCKS = ("requirements.lock", "requirements-running.lock", "deploy/requirements.lock", "docs/requirements.lock")
ENTRY = re.compile(r"([\w.-]+)==([^ ;]+)(?: ; [^\\\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)")
DOCKERFILE = (PROJECT / "deploy" / "Dockerfile").read_text()


def entries(text: str) -> dict[str, tuple[str, str]]:
    """(version, hashes) by name. Fails where a line of the lock is in no entry."""
    lines = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert ENTRY.sub("", lines) == ""
    return {canonicalize_name(name): (version, hashes) for name, version, hashes in ENTRY.findall(lines)}


def lock(name: str) -> dict[str, tuple[str, str]]:
    return entries((PROJECT / name).read_text())


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_of_a_lock_has_its_hashes(name: str) -> None:
    assert len(lock(name)) > 20


def test_the_lock_fits_what_the_project_asks_for() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    locked = {name: version for name, (version, _) in lock("requirements.lock").items()}
    asked = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    for line in (line for group in asked for line in group):
        needed = Requirement(line)
        if needed.name != "steadyseg":
            version = locked[canonicalize_name(needed.name)]
            assert needed.specifier.contains(version), f"{line}: the lock has {version}; run make lock"
    assert project["build-system"]["requires"] == [f"hatchling=={locked['hatchling']}"]


TORCH = {"torch", "torchvision", "timm", "segmentation-models-pytorch", "pytest"}
PARTS = {
    "requirements-running.lock": ({"openvino", "gradio", "hatchling"}, TORCH | {"onnxruntime"}),
    "deploy/requirements.lock": (lock("requirements-running.lock").keys() - {"editables"}, TORCH),
    "docs/requirements.lock": ({"zensical", "mkdocstrings-python"}, TORCH),
}
"""By lock: some packages that it has, and those that it lacks."""


@pytest.mark.parametrize("name", PARTS)
def test_a_lock_is_a_part_of_the_whole_one(name: str) -> None:
    part, (has, lacks) = lock(name), PARTS[name]
    assert part.items() <= lock("requirements.lock").items() and has <= part.keys() and not part.keys() & lacks


def test_the_container_starts_from_a_digest_installs_by_hash_and_is_not_root() -> None:
    assert re.search(r"^ARG PYTHON=3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall("^FROM (.*?)(?: AS .*)?$", DOCKERFILE, re.MULTILINE)) == {"python:${PYTHON}"}
    installs = re.findall(r"pip install (.*)", DOCKERFILE)
    assert all("--no-deps" in words for words in installs) and len(installs) == 2
    assert "--require-hashes" in installs[0] and "--no-build-isolation" in installs[1]
    assert re.search("^USER 10001", DOCKERFILE, re.MULTILINE) and DOCKERFILE.count('\nENTRYPOINT ["steadyseg"]\n') == 1


def test_the_cpu_container_leaves_out_cuda_and_nothing_else(tmp_path: Path) -> None:
    """The Dockerfile's own command, on a copy of the lock."""
    (program,) = re.findall(r"sed -i -E ('[^']+')", DOCKERFILE)
    copied = tmp_path / "requirements.lock"
    copied.write_bytes((PROJECT / "deploy" / "requirements.lock").read_bytes())
    subprocess.run(f"sed -i -E {program} {copied}", shell=True, check=True)
    whole, left = lock("deploy/requirements.lock"), entries(copied.read_text())
    gone = whole.keys() - left.keys()
    assert left.items() < whole.items() and "onnxruntime-gpu" in gone
    assert gone == {name for name in whole if name.startswith(("nvidia-", "cuda-"))} | {"onnxruntime-gpu"}


def test_a_workflow_names_every_action_by_its_commit() -> None:
    text = (PROJECT / ".github" / "workflows" / "ci.yml").read_text()
    used = re.findall(r"uses: (\S+)", text)
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)


BASE = "docker.io/library/python:local"
"""Debian's Python in place of the image that the Dockerfile names: registries of images are asked for nothing."""


def buildah(*words: str | Path) -> str:
    env = os.environ | {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
    run = subprocess.run(["buildah", *map(str, words)], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return run.stdout.strip().splitlines()[-1] if run.stdout.strip() else ""


@pytest.mark.long
def test_the_image_builds_and_segments(tmp_path: Path) -> None:
    """The Dockerfile, built whole."""
    if os.geteuid() or not (shutil.which("buildah") and shutil.which("mmdebstrap")):
        pytest.skip("needs root, buildah and mmdebstrap")
    packages = "--include=python3,python3-venv,python-is-python3,ca-certificates"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", packages, "bookworm", tmp_path / "base"], check=True)
    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, tmp_path / "base", "/")
    buildah("commit", "--quiet", "--rm", base, BASE)
    here = [path for path in ("/etc/pip.conf", Path.home() / ".config/pip", "/etc/ssl/certs") if Path(path).exists()]
    mounts = [f"--volume={path}:{path}:ro" for path in here]  # how this machine reaches PyPI
    tag = "localhost/steadyseg:test"
    buildah(
        "build",
        "--pull-never",
        "--build-arg=PYTHON=local",
        *mounts,
        "-f",
        PROJECT / "deploy" / "Dockerfile",
        "-t",
        tag,
        PROJECT,
    )
    container = buildah("from", "--pull-never", tag)
    try:
        shown = buildah("run", container, "--", "steadyseg", "video", "street:7:3", "-o", "/tmp/o.mp4")
        assert shown
        assert buildah("run", container, "--", "id", "-u") == "10001"
        other = ("run", "--user", "4321:4321", container, "--", "steadyseg")  # has no entry and no home
        assert "/tmp/p.mp4" in buildah(*other, "video", "street:7:3", "-o", "/tmp/p.mp4")
        assert buildah("run", container, "--", "steadyseg", "bench", "--help")  # studies are in the image
    finally:
        buildah("rm", container)
        buildah("rmi", tag, BASE)
