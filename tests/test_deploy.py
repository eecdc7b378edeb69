"""The container of deploy/Dockerfile: without root, and built whole."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parent.parent / "deploy"


def test_the_image_is_not_root() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert any(line.startswith("USER 10001") for line in lines)
    assert lines.count('ENTRYPOINT ["steadyseg"]') == 1


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
        DEPLOY / "Dockerfile",
        "-t",
        tag,
        DEPLOY.parent,
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
