"""One pass over the frames gives every row the metrics of a `steadyseg evaluate` of its own."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from made.methods import TorchSegmenter
from made.waiting import PATIENCE_S

from steadyseg.app.cli import main, read_flags
from steadyseg.app.commands import find_command
from steadyseg.core.classes import CAMVID
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.checkpoint import CheckpointMeta, load_checkpoint, save_checkpoint
from steadyseg.core.preprocess import Normalize, resize
from steadyseg.core.segmenter import Segmenter
from steadyseg.core.temporal import TemporalSmoothing
from steadyseg.seg.calibrate import ConformalCheck, ConformalFit, fit_temperature, read_class_weights
from steadyseg.seg.evaluate import FrameMetrics, seed_frames
from steadyseg.seg.networks.unet import UNet
from steadyseg.seg.options import UNetOptions
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.seg.street.drive import Street
from steadyseg.seg.torch_executor import torch_executor
from steadyseg.studies.harness.networks import measured_networks
from steadyseg.studies.harness.study import PAGES, Cache, data_digest
from steadyseg.studies.harness.trainings import Queue
from steadyseg.studies.results.front import SHOWN, front_digest
from steadyseg.studies.results.jobs import all_jobs, fits_of, fits_record, job_digest
from steadyseg.studies.results.matrix import NETWORKS
from steadyseg.studies.results.methods import ALL, MEMBER, MOTION_INPUTS, ONE, Method, Sampling
from steadyseg.studies.results.parts import Parts
from steadyseg.studies.results.plots import write_plots
from steadyseg.studies.results.published_tables import effects_table
from steadyseg.studies.results.rows import Fits
from steadyseg.studies.results.sweep import RISK_CLASS, Subject, Swept, sweep
from steadyseg.studies.results.tables import control_table

pytestmark = pytest.mark.slow

HEIGHT, WIDTH, FRAMES = 64, 96, 4
STILL = TemporalSmoothing(1.25)
"""The memory of the product without motion; the window of the paper has tests of its own."""
CLASS_WEIGHTS = [0.3 + 0.4 * place for place in range(len(CAMVID))]


def saved(folder: Path, seed: int, dropout: float) -> Path:
    torch.manual_seed(seed)
    options = UNetOptions(channels=4, depth=3, dropout=dropout, dropout_places=("enc2", "dec4") if dropout else ())
    network = UNet(len(CAMVID), options)
    record = {name: getattr(options, name) for name in options.__dataclass_fields__}
    training = {"class_weights": CLASS_WEIGHTS}
    meta = CheckpointMeta("unet", record, CAMVID, HEIGHT, WIDTH, (0.4, 0.4, 0.4), (0.3, 0.3, 0.3), training=training)
    save_checkpoint(folder / f"{seed}.safetensors", network.state_dict(), meta)
    return folder / f"{seed}.safetensors"


def street() -> Street:
    return Street(seed=2, height=HEIGHT, width=WIDTH)


def swept(
    paths: list[Path], methods: dict[str, Method], scanned: dict[str, Method], precision: str = "fp32", **more: Any
) -> Swept:
    models = [read_segmenter(path) for path in paths]
    meta = models[0].meta
    normalize = Normalize(meta.mean, meta.std)
    subject = Subject(
        [model.network().to(memory_format=torch.channels_last) for model in models],
        lambda frame: normalize(resize(frame.permute(0, 3, 1, 2), (HEIGHT, WIDTH))),
        meta.classes,
        read_class_weights(meta.training),
        precision,
    )
    return sweep(subject, street().frames(FRAMES), methods, scanned, **more)


def alone(segmenter: Segmenter) -> dict:
    live = FrameMetrics.of(CAMVID)
    for frame in seed_frames(street().frames(FRAMES), 0):
        live.update(frame, segmenter.step(frame))
    return live.result()


def opened(
    path: Path, method: Method, members: tuple[Path, ...] = (), precision: Literal["fp32", "bf16"] = "fp32"
) -> TorchSegmenter:
    smoothing = method.smoothing
    memory = (smoothing.tau, smoothing.motion) if smoothing else (None, None)
    options = MethodOptions(method.mode, method.sampling.samples, *memory)
    model, *others = (read_segmenter(name) for name in (path, *members))
    resolved = replace(options.resolve(), temperature=method.temperature)
    made = torch_executor(model, resolved, members=others, keep_probs=True, precision=precision)
    return TorchSegmenter(made)


def assert_same(ours: dict, theirs: dict, tolerance: float = 1e-6) -> None:
    for key in ("nll", "accuracy", "miou", "ece", "brier", "consistency", "cec", "aurc", "iou", "class_consistency"):
        assert ours[key] == pytest.approx(theirs[key], abs=tolerance), key


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_row_of_a_network_is_what_it_is_alone(tmp_path: Path, precision: Literal["fp32", "bf16"]) -> None:
    path = saved(tmp_path, 1, 0.3)
    draw = Sampling("dropout")
    methods = {
        "dnn": Method(ONE),
        "dnn warm": Method(ONE, None, 1.7),
        "vq-dnn": Method(ONE, STILL),
        "following": Method(ONE, MOTION_INPUTS),
        "bnn-1": Method(draw),
        "bnn-3": Method(Sampling("dropout", 3)),
        "vq-bnn": Method(draw, STILL, 0.8),
    }
    found = swept([path], methods, {}, precision).rows
    for name, method in methods.items():
        assert_same(found[name], alone(opened(path, method, precision=precision)))


def test_the_rows_of_an_ensemble_too(tmp_path: Path) -> None:
    first, *others = (saved(tmp_path, seed, 0.0) for seed in (1, 2, 3))
    methods = {"ensemble": Method(ALL), "vq-ensemble": Method(MEMBER, STILL)}
    found = swept([first, *others], methods, {}).rows
    for name, method in methods.items():
        assert_same(found[name], alone(opened(first, method, tuple(others))))
    assert found["ensemble"]["nll"] < max(alone(opened(path, Method(ONE)))["nll"] for path in (first, *others))


@pytest.mark.parametrize("smoothing", [None, STILL, MOTION_INPUTS])
def test_a_temperature_is_that_of_the_calibrate_command(tmp_path: Path, smoothing: object) -> None:
    path = saved(tmp_path, 1, 0.0)
    method = Method(ONE, smoothing)  # type: ignore[arg-type]
    fits = swept([path], {}, {"row": method}).temperatures
    expected = fit_temperature(opened(path, method).module, street().frames(FRAMES), CAMVID)
    assert fits["row"].temperature == pytest.approx(expected.temperature, abs=1e-4)
    assert fits["row"].flips == expected.flips and fits["row"].pixels == expected.pixels


def test_a_network_far_too_sure_is_measured_without_a_temperature(tmp_path: Path) -> None:
    path = saved(tmp_path, 1, 0.0)
    tensors, meta = load_checkpoint(path)
    tensors |= {name: 1000 * tensor for name, tensor in tensors.items() if name.startswith("head.")}
    save_checkpoint(path, tensors, meta)
    found = swept([path], {"row": Method(ONE)}, {"row": Method(ONE)})
    assert found.temperatures == {} and set(found.sets) == {"row"} and found.rows["row"]["nll"] > 10


def test_the_thresholds_of_sets_are_fitted_and_checked_at_temperature_1(tmp_path: Path) -> None:
    path = saved(tmp_path, 1, 0.0)
    method = Method(ONE, MOTION_INPUTS)
    fitted = swept([path], {}, {"row": method}).sets["row"]
    by_hand, segmenter = ConformalFit(CAMVID.void, RISK_CLASS), opened(path, method)
    seen = [(frame, segmenter.step(frame)) for frame in street().frames(FRAMES)]
    for frame, maps in seen:
        by_hand.add(torch.from_numpy(maps.probs)[:, ::2, ::2], torch.from_numpy(frame.label)[::2, ::2])
    assert fitted.scores.thresholds(0.9) == pytest.approx(by_hand.scores.thresholds(0.9), abs=1e-4)

    record = {"conformal": {"coverage": 0.9, **fitted.scores.thresholds(0.9)}}
    alone, checks = ConformalCheck(record, CAMVID), {"row": ConformalCheck(record, CAMVID)}
    found = swept([path], {"row": method}, {}, checks=checks, sequence=str)
    for place, (frame, maps) in enumerate(seen):
        alone.update(frame, maps, str(place))
    ours, theirs = found.rows["row"]["conformal"]["lac"], alone.result()["lac"]
    assert ours["coverage_by_sequence"] == pytest.approx(theirs["coverage_by_sequence"], abs=1e-4)
    assert ours["set_size"] == pytest.approx(theirs["set_size"], abs=1e-4)


def test_a_row_with_class_weights_undone_is_that_of_the_checkpoint_made_so(tmp_path: Path) -> None:
    path = saved(tmp_path, 1, 0.3)
    made = str(tmp_path / "made.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steadyseg.app.evaluation.data.STREET_FRAMES", 2)
        assert main(["calibrate", str(path), "--data", "street", "-o", made, "--logit-adjustment"]) == 0
    methods = {"vq-dnn": Method(ONE, STILL, undone=True), "bnn-3": Method(Sampling("dropout", 3), undone=True)}
    found = swept([path], methods, {}).rows
    for name, method in methods.items():
        assert_same(found[name], alone(opened(Path(made), method)), 3e-5)  # the bias is added in another place


def test_a_part_of_a_job_is_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"nll": 0.1 + 0.2, "missing": None}

    parts = Parts("paper-plain-0", "data-weights", tmp_path)
    assert not parts.has("stills")
    first = parts.get("stills", make)
    assert parts.has("stills") and not parts.has("stream")
    assert Parts("paper-plain-0", "data-weights", tmp_path).get("stills", make) == first == make()
    assert len(made) == 2  # once for the part, once just now
    assert not Parts("paper-plain-0", "data-other", tmp_path).has("stills")
    parts.forget()
    assert not parts.has("stills")


def test_what_was_fitted_is_the_same_read_back(tmp_path: Path) -> None:
    path = saved(tmp_path, 1, 0.0)
    temperatures = swept([path], {}, {"vq-dnn": Method(ONE, STILL)}).temperatures
    fits = Fits(temperatures, {"vq-dnn": TemporalSmoothing(0.8)}, {"dnn": {"conformal": {"lac": 1 / 3}}})
    read = Parts("job", "digest", tmp_path).get("fit-stream", lambda: fits_record(fits))
    assert fits_of(read) == fits


def test_the_control_stands_beside_the_network_that_saw_all_stills() -> None:
    row = {"nll": 0.5, "accuracy": 0.8, "miou": 0.4, "ece": 0.03, "consistency": 0.9}
    rows = {
        "paper-mc-smooth-0": {"rows": {"stream": {"vq-dnn": row}}},
        "paper-mc-smooth-0-clean": {"rows": {"stream": {"vq-dnn": row | {"nll": 0.55}}}},
    }
    table = control_table(rows)
    assert "| vq-dnn | 0.5000 | 80.00 | 40.00 | 3.00 | 90.00 | 0.5500 |" in table and "+10.0 %" in table
    assert control_table({"paper-mc-smooth-0": rows["paper-mc-smooth-0"]}) == ""


def test_an_effect_is_the_change_of_nll_beside_the_published_one() -> None:
    rows = {"paper-plain-0": {"rows": {"stream": {"dnn": {"nll": 0.5}, "vq-dnn": {"nll": 0.4}}}}}
    text = effects_table(rows)
    assert "| temporal smoothing, plain network | -18.1 % | -20.0 % | - | - | - |" in text  # 0.354 -> 0.290
    assert "| all three, one pass | -26.6 % | - | - | - | - |" in text  # 0.354 -> 0.260
    assert "| temporal smoothing, one dropout pass | - |" in text  # not published
    assert effects_table({}) == ""


def test_every_figure_of_the_page_is_drawn(tmp_path: Path) -> None:
    page = PAGES / "results"
    write_plots(json.loads((page / "record.json").read_text()), tmp_path)
    shown = re.findall(r"!\[.+?\]\((.+?)\)", (page / "README.md").read_text())
    assert {*(path.name for path in tmp_path.iterdir()), "strip.png"} == set(shown)


WORKER = """
import multiprocessing, sys, time
from steadyseg.studies.results.matrix import NETWORKS
from steadyseg.studies.results.jobs import exit_with_parent

def work():
    print("working", flush=True)
    while True:
        exit_with_parent()
        time.sleep(0.05)

if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work)
    worker.start()
    worker.join()
"""


def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(WORKER)
    command = [sys.executable, str(script)]
    study = subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    )
    assert study.stdout is not None and study.stdout.readline() == b"working\n"
    study.kill()
    study.communicate(timeout=PATIENCE_S)  # ends when the worker, who has the same output, does


def test_the_committed_rows_are_of_these_checkpoints_and_this_data(data_dir: Path) -> None:
    digest = data_digest(data_dir / "camvid")
    kept = Cache(PAGES / "results" / "record.json")
    assert not [job.name for job in all_jobs() if kept.get(job.name, job_digest(job, digest)) is None]
    front = json.loads((PAGES / "results" / "front.json").read_text())
    assert {name: row["digest"] for name, row in front.items()} == {name: front_digest(name, digest) for name in SHOWN}


def test_every_training_on_record_has_a_command_that_is_accepted() -> None:
    assert {name: (network.seed, network.command) for name, network in NETWORKS.items()} == {
        name: (record["seed"], record["command"]) for name, record in measured_networks().items()
    }
    for network in NETWORKS.values():
        program, command, words = find_command(Queue(Path("camvid"), Path("runs")).words(network.training))
        config = read_flags(program, command, words).config
        assert config.loop.seed == network.seed and config.unet.smoothing == network.smoothing
