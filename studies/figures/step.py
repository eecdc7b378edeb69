"""A step makes the figures of one study, or one fit, of included networks, and knows what they rest on."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyseg.core.errors import InputError
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.runtime.open_model import find_model
from steadyseg.seg.data.held_out import CAMVID_STRETCHES, recorded_names
from steadyseg.seg.data.label_folder import read_names
from steadyseg.seg.pretrained import FOLDER
from steadyseg.studies.harness.networks import digest_of
from steadyseg.studies.harness.study import PROJECT

Digests = Mapping[str, str]
"""Digest of each data set, by the name of its folder."""
OUT = "runs/figures"
"""Folder of what a step leaves for the next one, relative to the root of the repository."""


def digest_at(found: Any) -> str | None:
    """The digest that a record keeps beside its figures."""
    kept: str | None = found.get("digest") or found.get("rests_on")
    return kept


@dataclass(frozen=True)
class Step:
    """Figures of included networks in one record; {} stands for the network in all texts."""

    name: str
    networks: Sequence[str]
    place: str
    """FILE:ENTRY of the record, relative to the root of the repository. A / separates the entry's keys, and a whole
    file has an empty entry."""
    wanted: Callable[[str, Digests], str]
    """Network and data -> what its figures should rest on."""
    commands: Sequence[str]
    """Words after `python -m`, run once, or for each network where they have {}. NAMES stands for all networks that
    are due, DATA for the data folder, CAMVID for its CamVid folder; `fit_tokens` and `also` explain the others."""
    read: Callable[[Any], str | None] = digest_at
    """What lies at the entry -> what its figures rest on."""
    beside: Sequence[str] = ()
    """Other entries that the same commands make."""

    def known(self, network: str) -> str | None:
        """What the figures in the record rest on; None where they are not whole."""
        file, _, entry = self.place.format(network, network).partition(":")
        record = json.loads(path.read_text()) if (path := PROJECT / file).exists() else {}
        found, *others = (entry_of(record, one.format(network)) for one in (entry, *self.beside))
        return self.read(found) if found and all(others) else None

    def state(self, network: str, digests: Digests) -> str:
        """`done`, `missing`, or which part of what the figures rest on is another now."""
        try:
            known, wanted = self.known(network), self.wanted(network, digests)
        except InputError:  # new weights, which have no temperature or statistics yet
            return "stale: rests on a fit that is missing"
        if known is None or known == wanted:
            return "done" if known else "missing"
        pairs = list(zip(known.split("-"), wanted.split("-"), strict=False))
        if known.count("-") != wanted.count("-") or len(pairs) == 1:
            return f"stale: of {known}, not {wanted}"
        titles = {digest_of(network): "weights", **{digest: f"data {name}" for name, digest in digests.items()}}
        changed = [(titles.get(now, "fit"), before, now) for before, now in pairs if before != now]
        return "stale: " + ", ".join(f"{title} {before}, now {now}" for title, before, now in changed)

    def lines(self, networks: Sequence[str], data: Path) -> Iterator[list[str]]:
        """Yields each command as its words after `python -m`."""
        for command in self.commands:
            for network in networks if "{}" in command else networks[:1]:
                tokens = {"{}": network, "CAMVID": str(data / "camvid"), "DATA": str(data)} | fit_tokens(network, data)
                whole = {"NAMES": [*networks], "ALSO": also(network, data)}
                words = (whole.get(word) or [put(word, tokens)] for word in command.split())
                yield [one for group in words for one in group]


def entry_of(record: Any, keys: str) -> Any:
    for key in filter(None, keys.split("/")):
        record = (record or {}).get(key)
    return record


def put(word: str, tokens: Mapping[str, str]) -> str:
    """Replaces each token in a word."""
    for token, value in tokens.items():
        word = word.replace(token, value)
    return word


def fit_tokens(network: str, data: Path) -> dict[str, str]:
    """SPLIT is the split of the network's fits, FITTED the folder of its moving stills. CALIBRATED is off where the
    test stills would be measured with a temperature that was fitted on them."""
    split = fit_split(network)
    if split == "held-out":
        return {"SPLIT": split, "FITTED": str(data / "camvid"), "CALIBRATED": "on"}
    return {"SPLIT": split, "FITTED": str(PROJECT / OUT / "camvid"), "CALIBRATED": "off"}


def also(network: str, data: Path) -> list[str]:
    """ALSO: further folders that a `road-` network was trained on (`steadyseg data roads DATA/roads -o roads`), and
    photographs without a street."""
    roads = [str(PROJECT / "roads" / name) for name in ("idd-lite", "labelmefacade")]
    foreign = ["--foreign", str(data / "imagenet-sample" / "imagenet-1k-24")]
    return (["--also", *roads] if network.startswith("road-") else []) + foreign


def fit_split(network: str) -> str:
    """The stretches of train that the training held out; test for a network that was trained on some of them."""
    ends = {name for stretch in CAMVID_STRETCHES for name in stretch}
    return "held-out" if ends <= set(recorded_names(read_meta(find_model(network)).training)) else "test"


def link_stills(data: Path) -> None:
    """Makes the folder of the moving stills that are fitted on in test: links to train and to every third still."""
    folder, names = PROJECT / OUT / "camvid", read_names(FOLDER / "camvid-test-49.txt")
    stills = [f"{part}/{name}.png" for part in ("test", "testannot") for name in names]
    for place in ("train", "trainannot", *stills):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / place).exists():
            (folder / place).symlink_to((data / "camvid" / place).absolute())
