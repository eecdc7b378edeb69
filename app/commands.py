"""The table of commands: summary, flags and function. Flags and function are imported when the command is called."""

from importlib import import_module
from typing import Any, NamedTuple

from steadyseg.core.errors import InputError


class Command(NamedTuple):
    """A command: one line of `steadyseg --help`."""

    summary: str
    flags: str = ""
    """`module:dataclass`; imports no torch. Empty for a command without flags."""
    run: str = ""
    """`module:function` of the flags (and presets of trainings), which returns the exit code."""
    kinds: dict[str, "Command"] = {}  # noqa: RUF012 (never changed)
    """Kinds of the command (such as `seg` of `train`), named by the word after it; empty for most commands."""
    presets: str = ""
    """`module:dict` of configurations that --preset names; the first configuration is the default."""


def load(place: str) -> Any:
    """Imports and returns the object that `module:name` names."""
    module, name = place.split(":")
    return getattr(import_module(module), name)


def find_command(words: list[str], root: Command, program: str = "steadyseg") -> tuple[str, Command, list[str]]:
    """Returns (program, command, remaining words); the command has kinds only if the words name none of them.
    InputError for unknown words."""
    command, rest = root, words
    while command.kinds and rest and rest[0] not in ("-h", "--help"):
        if rest[0] not in command.kinds:
            problem = "unknown command" if command is root else f"say what to {program.split()[-1]} first, not"
            raise InputError(f"{problem} {rest[0]!r}; choose from {', '.join(command.kinds)}")
        program, command, rest = f"{program} {rest[0]}", command.kinds[rest[0]], rest[1:]
    return program, command, rest


TRAININGS = {
    "seg": Command(
        "Train a segmentation network on labelled images (SegNet-Tutorial layout) or on the synthetic street.",
        "steadyseg.app.train.flags:SegTrainJob",
        "steadyseg.app.train.command:train_segmenter",
        presets="steadyseg.seg.presets:PRESETS",
    ),
    "classification": Command(
        "Train an image classifier on CIFAR-10, CIFAR-100 or a folder of images by class.",
        "steadyseg.app.train.flags:ClassTrainJob",
        "steadyseg.app.train.command:train_classifier",
        presets="steadyseg.classification.options:CLASS_PRESETS",
    ),
}
DATA = {
    "list": Command(
        "Print the data sets: content, terms, and how to get each.", run="steadyseg.app.data_sets:list_sets"
    ),
    "import": Command(
        "Make a data folder of COCO, CVAT, Label Studio, LabelMe, YOLO, Cityscapes, VOC or colour PNGs.",
        "steadyseg.app.labelling.flags:ImportJob",
        "steadyseg.app.labelling.exchange:run_import",
    ),
    "export": Command(
        "Write the labels of a data folder, or a network's masks, for COCO, CVAT, YOLO or Label Studio.",
        "steadyseg.app.labelling.flags:LabelExportJob",
        "steadyseg.app.labelling.exchange:run_export",
    ),
    "roads": Command(
        "Make data folders of IDD-Lite and LabelMeFacade, whose labels allow sets of CamVid's classes.",
        "steadyseg.app.labelling.flags:RoadsJob",
        "steadyseg.app.labelling.coarse:run_roads",
    ),
    "within": Command(
        "Store which class of each coarse label's set a network finds likeliest, for trainings on these labels.",
        "steadyseg.app.labelling.flags:WithinJob",
        "steadyseg.app.labelling.coarse:run_within",
    ),
    **{
        name: Command(
            f"Fetch {title}; run again, it goes on where it stopped.",
            "steadyseg.app.data_sets:FetchJob",
            f"steadyseg.app.data_sets:fetch_{name}",
        )
        for name, title in {"camvid": "CamVid", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}.items()
    },
}
STEADYSEG = Command(
    "Real-time video segmentation with a measured confidence for every pixel.",
    kinds={
        "demo": Command(
            "Open the page: webcam or video file in, segmentation and uncertainty out.",
            "steadyseg.app.page.flags:PageOptions",
            "steadyseg.app.page.server:serve",
        ),
        "video": Command(
            "Segment a video file, camera, stream, image folder or the synthetic street.",
            "steadyseg.app.video.flags:VideoJob",
            "steadyseg.app.video.command:run_video",
        ),
        "batch": Command(
            "Segment many videos: a folder of results for each, on all cores of this machine or on a Ray cluster.",
            "steadyseg.app.scale.flags:BatchJob",
            "steadyseg.app.scale.batch.command:run_batch",
        ),
        "train": Command(
            "Train a network: `train seg` or `train classification`, each with its own flags.", kinds=TRAININGS
        ),
        "evaluate": Command(
            "Measure a network on labelled data: accuracy, IoU and calibration.",
            "steadyseg.app.evaluation.flags:EvaluateJob",
            "steadyseg.app.evaluation.evaluate:run_evaluate",
        ),
        "calibrate": Command(
            "Fit a network's confidence to labels: temperature, prediction sets, and a bound on misses of a class.",
            "steadyseg.app.evaluation.flags:CalibrateJob",
            "steadyseg.app.export.calibrate:run_calibrate",
        ),
        "export": Command(
            "Write one .onnx file to deploy, with the proof that it computes what torch computes.",
            "steadyseg.app.export.flags:ExportJob",
            "steadyseg.app.export.command:run_export",
        ),
        "verify": Command(
            "Check on this device that an .onnx file computes what its proof expects, and how fast.",
            "steadyseg.app.export.flags:VerifyJob",
            "steadyseg.app.export.verify:run_verify",
        ),
        "wrap": Command(
            "Make an .onnx file of another program's network, smoothed over time and with uncertainty.",
            "steadyseg.app.export.flags:WrapJob",
            "steadyseg.app.export.wrap:run_wrap",
        ),
        "models": Command(
            "List the pretrained checkpoints, and all networks that can be trained.",
            run="steadyseg.app.models:run_models",
        ),
        "data": Command(
            "Bring labels of your own into a data folder, or fetch a data set, every file verified.", kinds=DATA
        ),
        "suspects": Command(
            "List likely label errors: regions to which a confident network gives another class.",
            "steadyseg.app.labelling.flags:SuspectsJob",
            "steadyseg.app.labelling.suspects:run_suspects",
        ),
    },
)
