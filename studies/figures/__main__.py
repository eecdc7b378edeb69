"""Makes every figure of the included networks again that is not of the weights, fits and data as they are.

    python -m steadyseg.studies.figures [NETWORK ...] [--data data] [--list] [--only STEP ...] [--minutes M]

Fits come first, then the tables of the cards, then the studies. What is done is kept, so a command that was stopped, or
killed, goes on where it was; --minutes starts no step after so long. Two commands with other networks may run side by
side, each on its own cores (`taskset -c 0 python -m ...`). The flag --list shows what is done, and what is stale and
why. It also shows how long each step last took, and which records are made by hand.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadyseg.app.console import Console
from steadyseg.app.data_sets import DATA
from steadyseg.core.errors import CheckFailed, InputError
from steadyseg.core.system.machine import cpu_name
from steadyseg.studies.figures.by_hand import ALSO, BY_HAND
from steadyseg.studies.figures.step import Digests, Step, link_stills
from steadyseg.studies.figures.steps import all_steps
from steadyseg.studies.harness.study import PAGES, PROJECT, data_digest, exit_code, read_record_file, write_record

MINUTES = PAGES / "minutes.json"
"""By step and network: minutes of the last run, and of them those that one core computed; on which processor."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="included networks; without any: all of them")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with camvid/, cifar10/, video/")
    parser.add_argument("--list", action="store_true", help="only say what is done and what is not")
    parser.add_argument("--only", nargs="+", metavar="STEP", help="only these steps, by name")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no step after so many minutes")
    return exit_code("figures", lambda: work(parser.parse_args()))


def work(given: argparse.Namespace) -> None:
    data = given.data.absolute()
    digests, steps = {"camvid": data_digest(data / "camvid")}, all_steps()
    steps = [step for step in steps if step.name in chosen("--only", given.only, [step.name for step in steps])]
    networks = chosen("NETWORK", given.networks, [name for step in steps for name in step.networks])
    if given.list:
        return print_list(steps, networks, digests)
    link_stills(data)
    if run(steps, networks, data, digests, given.minutes):
        start(["steadyseg.studies", "tables"])


def chosen(flag: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The given names, or all that are known; InputError for any other."""
    known = list(dict.fromkeys(known))
    for name in given or ():
        if name not in known:
            raise InputError(f"{flag} {name}: no such name here; there are {', '.join(known)}")
    return list(given or known)


def run(steps: Sequence[Step], networks: Sequence[str], data: Path, digests: Digests, minutes: float) -> bool:
    """Runs what is due; returns True if anything was."""
    began, console, has_run = time.monotonic(), Console(stderr=True), False
    for step in steps:
        due = [name for name in networks if name in step.networks and step.state(name, digests) != "done"]
        if not due:
            continue
        if time.monotonic() - began >= 60 * minutes:
            console.print(f"{step.name}: not begun after {minutes:g} minutes; the same command goes on here")
            break
        console.print(f"{step.name}: {', '.join(due)}", soft_wrap=True)
        started, has_run = times(), True
        for words in step.lines(due, data):
            start(words)
        if left := [name for name in due if step.state(name, digests) != "done"]:
            raise CheckFailed(f"{step.name}: it has run, and {', '.join(left)} is {step.state(left[0], digests)}")
        note_minutes(step, due, [(after - before) / 60 for before, after in zip(started, times(), strict=True)])
    return has_run


def times() -> tuple[float, float]:
    """Seconds of the clock, and those that the cores have computed for commands that are over."""
    spent = os.times()
    return spent.elapsed, spent.children_user + spent.children_system


def start(words: Sequence[str]) -> None:
    """Runs `python -m` with these words; CheckFailed where that fails."""
    if code := subprocess.run([sys.executable, "-m", *words], cwd=PROJECT).returncode:
        raise CheckFailed(f"python -m {' '.join(words)}: exit code {code}")


def note_minutes(step: Step, networks: Sequence[str], minutes: Sequence[float]) -> None:
    """Keeps how long a step took, in equal parts for its networks. On a busy machine only core minutes say much."""
    kept = read_minutes()
    clock, cores = (round(one / len(networks), 2) for one in minutes)
    part = {"minutes": clock, "core_minutes": cores, "cpu": cpu_name()}
    kept.setdefault(step.name, {}).update(dict.fromkeys(networks, part))
    write_record(MINUTES, kept, sort=True)


def read_minutes() -> dict[str, dict[str, Any]]:
    return read_record_file(MINUTES)


def print_list(steps: Sequence[Step], networks: Sequence[str], digests: Digests) -> None:
    """Prints every step of every network, and what is made by hand."""
    kept, sums = read_minutes(), {True: 0.0, False: 0.0}
    for step, network in ((one, name) for one in steps for name in one.networks if name in networks):
        state, took = step.state(network, digests), kept.get(step.name, {}).get(network, {}).get("core_minutes")
        sums[state == "done"] += took or 0.0
        print(f"{step.name:33} {network:26} {'-' if took is None else f'{took:.1f}':>5}  {state}")
    print(f"minutes of one core, of the steps that have a number: {sums[True]:.0f} done, {sums[False]:.0f} due")
    print("\nBy hand:", *(f"{place}: {why}" for place, why in BY_HAND.items()), ALSO, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
