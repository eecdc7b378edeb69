"""The files in deploy/ without a cluster: valid against Kubernetes' own schemas, and every flag in them is one of
ours."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from steadyseg.app.parsing import parse
from steadyseg.app.scale.flags import BatchJob

kubernetes_validate = pytest.importorskip("kubernetes_validate")
DEPLOY = Path(__file__).parent.parent / "deploy"
MANIFESTS = sorted(DEPLOY.glob("*.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_are_valid_strictly(path: Path) -> None:
    for document in documents(path):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_what_decodes_videos_from_elsewhere_reaches_the_named_places_alone_and_ends(path: Path) -> None:
    policies = [document["spec"] for document in documents(path) if document["kind"] == "NetworkPolicy"]
    (labels,) = [
        document["spec"]["template"]["metadata"]["labels"]
        for document in documents(path)
        if "template" in document["spec"]
    ]
    (policy,) = policies
    assert policy["podSelector"]["matchLabels"] == labels and set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert all(rule.get("to") and rule.get("ports") for rule in policy.get("egress", ()))
    for document in documents(path):
        assert document["kind"] != "Job" or document["spec"]["activeDeadlineSeconds"] > 0


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_they_run_our_commands_as_nobody_in_particular(path: Path) -> None:
    pods = [one["spec"]["template"]["spec"] for one in documents(path) if "template" in one["spec"]]
    assert len(pods) == 1
    (container,) = pods[0]["containers"]
    command, *words = (word.replace("$(JOB_COMPLETION_INDEX)", "0") for word in container["args"])
    assert command == "batch"
    parse(BatchJob, words, "steadyseg", "")  # InputError for what is no flag
    assert pods[0]["securityContext"]["runAsNonRoot"] and not pods[0]["automountServiceAccountToken"]
    safe = container["securityContext"]
    assert safe["readOnlyRootFilesystem"] and not safe["allowPrivilegeEscalation"]
    assert safe["capabilities"] == {"drop": ["ALL"]}
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pods[0]["volumes"]}


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
    here = [path for path in ("/etc/pip.conf", "/root/.config/pip", "/etc/ssl/certs") if Path(path).exists()]
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
        assert buildah("run", container, "--", "steadyseg", "bench", "--help")  # studies are in the image
    finally:
        buildah("rm", container)
        buildah("rmi", tag, BASE)
