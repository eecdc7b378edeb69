"""All steps in their order: fits, the tables of the cards, the studies."""

from collections.abc import Sequence

from steadyseg.app.commands import load
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import read_meta
from steadyseg.runtime.open_model import find_model
from steadyseg.studies.figures.step import OUT, Digests, Step, fit_split

CHECKPOINT = "seg/checkpoints/{}"
UNET, REALTIME = "camvid-unet-s", "road-realtime"
CAMVID = (UNET, REALTIME, "road-mobile", "road-quality")


def all_steps() -> list[Step]:
    return [*fits(), *cards(), *on_camvid(), *familiarity()]


def fits() -> list[Step]:
    """Temperature, prediction sets, bound of missed pedestrians of each method; familiarity and int8 with the first."""
    published = "--tau 1.25 --motion off"
    return [
        fit("dnn", "stills", "--mode dnn --familiarity ALSO --int8", beside=("familiarity", "int8")),
        fit("bnn x5", "stills", "--mode bnn --samples 5"),
        fit("vq-dnn, tau 1.25, motion, geometric", "moving-stills", "--mode vq-dnn"),
        fit("vq-bnn, tau 8, motion", "moving-stills", "--mode vq-bnn"),
        fit("vq-dnn, tau 1.25", "moving-stills", f"--mode vq-dnn {published}"),
        fit("vq-bnn, tau 1.25", "moving-stills", f"--mode vq-bnn {published}"),
    ]


def fit(method: str, protocol: str, flags: str, beside: Sequence[str] = ()) -> Step:
    """The fit of one method, in the checkpoint itself. It was made on the weights beside it, so its split tells all."""
    command = (
        f"steadyseg calibrate {{}} --data {'FITTED' if protocol == 'moving-stills' else 'CAMVID'} --split SPLIT "
        f"--protocol {protocol} {flags} --risk-class Pedestrian --risk 0.05 -o {CHECKPOINT}.safetensors --overwrite"
    )
    return Step(
        f"fit {method}".replace(",", "").replace(" ", "-"),
        CAMVID,
        f"{CHECKPOINT}.json:calibration/{method}",
        lambda network, _: f"{fit_split(network)} {protocol}",
        [command],
        lambda found: f"{found['split']} {found['protocol']}",
        beside,
    )


def cards() -> list[Step]:
    return [
        card("stills", "test", MethodOptions("dnn"), "--calibrated CALIBRATED"),
        card("stream", "val", MethodOptions("dnn")),
        card("stream", "val", MethodOptions("vq-dnn")),
        card("stream", "val", MethodOptions("vq-bnn")),
        card("stream", "val", MethodOptions("bnn", samples=30), "--samples 30", [UNET]),
    ]


def card(protocol: str, split: str, method: MethodOptions, flags: str = "", networks: Sequence[str] = CAMVID) -> Step:
    """A row of the card's tables, in the checkpoint itself; it rests on the temperature in use."""
    row = f"{protocol}-{method.mode}"

    def wanted(network: str, _: Digests) -> str:
        is_fitted = split == "test" == fit_split(network)
        return str(1.0 if is_fitted else method.resolve(read_meta(find_model(network))).temperature)

    report = f"{OUT}/{{}}-{row}.json"
    commands = [
        f"steadyseg evaluate {{}} --data CAMVID --split {split} --protocol {protocol} --mode {method.mode} {flags} "
        f"--report {report} --overwrite",
        f"steadyseg.studies.harness.bundle {CHECKPOINT}.safetensors {{}} --results {report}",
    ]
    place = f"{CHECKPOINT}.json:metrics/{row}"
    return Step(f"card-{row}", networks, place, wanted, commands, lambda found: str(found["temperature"]))


def study(
    name: str, networks: Sequence[str], record: str, digest: str, commands: str, beside: Sequence[str] = ()
) -> Step:
    """A record of docs/records, as FILE:ENTRY.

    Args:
        digest: Function of studies/, as MODULE:NAME, of the network and the digest of the data.
        commands: Modules of studies/ with their flags, with ; between them.
    """

    def wanted(network: str, digests: Digests) -> str:
        return str(load(f"steadyseg.studies.{digest}")(network, digests["camvid"]))

    place = f"docs/records/{record.replace(':', '.json:')}"
    modules = [f"steadyseg.studies.{one}" for one in commands.split("; ")]
    return Step(name, networks, place, wanted, modules, beside=beside)


def on_camvid() -> list[Step]:
    """Studies of single networks on CamVid and the street."""
    return [study("guide", CAMVID, "guide/record:{}", "guide.measure:guide_digest", "guide.measure NAMES --data DATA")]


def familiarity() -> list[Step]:
    """Scores of pictures stay in runs/familiarity; `python -m steadyseg.studies.familiarity` makes the record."""
    collect = "familiarity.collect --data DATA --every 2 NAMES; familiarity.streams --data DATA NAMES; familiarity"
    own = "familiarity.collect:familiarity_digest"
    return [study("familiarity", [UNET, REALTIME], "familiarity/record:networks/{}", own, collect, ["streams/{}"])]
