"""The trainings of the networks that are compared: 12 hours on two cores."""

import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.training.run_folder import CONFIG_NAME
from steadyseg.studies.harness.networks import PROJECT
from steadyseg.studies.results.matrix import COMPARED, CONTROL, MEMBERS, Network

NETWORKS = {network.name: network for network in [*COMPARED, *MEMBERS, CONTROL]}


def train_networks(data: Path, only: list[str] | None) -> None:
    """Trains each network whose file is missing; a training that was interrupted continues after its last whole epoch.

    Raises InputError for a name that is none of them, CheckFailed where a training fails.
    """
    if unknown := set(only or ()) - set(NETWORKS):
        raise InputError(f"--only {sorted(unknown)[0]}: no such network; there are {', '.join(NETWORKS)}")
    for network in NETWORKS.values():
        if network.name in (only or NETWORKS) and not network.file.exists():
            words = training_words(network, data)
            Console(stderr=True).print(f"{network.name}: steadyseg {shlex.join(words)}", soft_wrap=True)
            if code := subprocess.run([sys.executable, "-m", "steadyseg.app.cli", *words], cwd=PROJECT).returncode:
                raise CheckFailed(f"{network.name}: the training ended with exit code {code}")


def training_words(network: Network, data: Path) -> list[str]:
    """The words after `steadyseg` that begin or continue the training."""
    words = shlex.split(network.command)[1:]
    words[words.index("CamVid")] = str(data.absolute())
    return [*words, "--resume"] if (network.file.parent / CONFIG_NAME).exists() else words
