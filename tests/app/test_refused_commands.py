"""Bad input to a command is one line and exit code 2, and changes no file: a table for each command."""

from pathlib import Path

import numpy as np
import pytest
from made.local_server import files_under
from PIL import Image
from refusals import one_line_error

READ, NO_MEAN = "while it is read", "no temporal mean; add --stateful"
TABLES: dict[str, dict[str, str]] = {
    "": {
        "vidoe": "choose from demo, video",
    },
    "train": {
        "segmentation seg": "not 'segmentation'; choose from seg, classification",
        "seg --preset gpu": "choose from cpu, unet-s, realtime, mobile, replica",
        "classification --preset=paper": "choose from small, fast, sgd, sgd-imagenet, adamw, adamw-imagenet",
        "seg --epochz 3": "Unrecognized options: --epochz, 3; did you mean --epochs? See steadyseg train seg --help",
        "classification --config head=mean": "head must be gap, mlp",
        "seg --config pastee=0.3": "no setting is named pastee; `--config list` prints all",
        "seg --config paste=much": "paste must be a number, got 'much'",
        "seg --config prob=softplus": "prob must be tanh, relu6, constant",
        "seg --config absent.toml": "cannot be read (No such file or directory)",
        "seg --config damaged.toml": "no TOML file (",
        "seg --config deep.toml": "no TOML file (",
        "seg --config nested.toml": "no TOML file (",
        "seg --config list.json": "expected names with values",
        "seg --config recipe.yaml": "expected a .toml or .json file, NAME=VALUE, or list",
        "seg --config paste=2": "--config paste must lie in 0..1, got 2",
    },
    "video": {
        "": "source file, camera",
        "street --mode xx": "invalid choice 'xx' for argument '--mode'. Expected one of ('auto', 'dnn', 'vq-dnn'",
        "street --model camvid-unet-xl": "street-tiny",
        "street --executor torch": "did you mean --backend? See steadyseg video --help",
        "street --qqqq": "Unrecognized options: --qqqq; see steadyseg video --help",
        "street --model weights.pt": "can run code",
        "street --model GRAPH.ONNX": "GRAPH.ONNX: no",
        "zeros.mp4 --model street-tiny": "zeros.mp4",
        "http://[::1 --model street-tiny": "",
    },
    "video street:1:2 --model street-tiny": {
        "-o text.mp4": "--overwrite",
        "-o out.mp4 --report nowhere/r.json": "nowhere",
        "--report text.mp4": ".json",
        "--report r.json": "--overwrite",
        "--mode dnn --samples 5": "which has no dropout, got 5",
        "--size 200000": "use a smaller size",
        "--size 0": "must be 32 pixels or more, got 0",
        "--every 0": "every must be a whole number, 1 to 30, auto or live, got 0",
        "--mode vq-dnn --view set-size": "for vq-dnn, tau 1.25, motion, geometric",
    },
    "video --model street-tiny --overwrite": {
        "imgs/../imgs --masks imgs": READ,
        "imgs/0.png --masks imgs": READ,
        "imgs/0.mp4 -o imgs/0.mp4": READ,
        "imgs --masks masks": "would both be 0_uncertainty.png",
    },
    "batch": {
        "imgs -o text.mp4": "cannot be written to",
        "imgs -o out --workers 0": "must be 1 or more",
        "imgs -o out --workers 9999": "cores",
        "imgs -o out --max-frames 0": "--max-frames must be 1 or more, got 0",
        "-o out": "no videos were named",
    },
    "evaluate street-tiny --data street": {
        "--every 2": "--every 2: stills are no stream",
        "--protocol stream --every 0": "every must be a whole number, 1 to 30",
        "--config size=0": "must be 32 pixels or more, got 0",
        "--seed one": "--seed",
        "--split held-out --protocol stills": "the street has none",
        "--mode vq-dnn": "--protocol stream",
        "--report r.json": "--overwrite",
    },
    "calibrate": {
        "street-tiny --data street -o old.safetensors": "--overwrite",
        "street-tiny --data street -o c.pt": ".safetensors",
        "street-tiny --data street -o nowhere/c.safetensors": "make it first",
    },
    "calibrate street-tiny --data street -o c.safetensors": {
        "--coverage 1.5": "--coverage must lie between 0 and 1, got 1.5",
        "--coverage nan": "--coverage must lie between 0 and 1",
        "--risk 1": "--risk must lie between 0 and 1, got 1",
        "--risk-class Roof": "risk class Roof: no such class; this network knows Sky, Building",
        "--protocol moving-stills": "moves photographs",
        "--protocol stills --mode vq-dnn": "--protocol stream or --mode dnn",
        "--samples 3": "no dropout, got 3",
        "--tau 0": "tau must be a positive",
        "--int8": "--int8 needs the recordings",
        "--familiarity": "--familiarity needs the recordings",
    },
    "suspects": {
        "imgs --model street-tiny -n 0 -o s": "-n must be 1 or more, got 0",
        "imgs --model cifar10-resnet18-plain -o s": "an image classifier",
        "street --model street-tiny -o s": "the street's labels are exact",
        "imgs --model street-tiny -o s": "no such folder",
        "imgs --model street-tiny --split held-out -o s": "lists no images",
        "imgs --model street-tiny -o s/deeper": "there is no folder",
        "imgs --model street-tiny -o . --overwrite": "give the name of a new one",
        "own --model street-tiny -o own --overwrite": "would be replaced while",
    },
    "data": {
        "import own/coco.json -o own --overwrite": "would be replaced while",
        "export own -o own --overwrite": "would be replaced while",
    },
    "export street-tiny": {
        "": "--output",
        "-o m.onnx --size 180x7": "32 pixels or more",
        "-o m.onnx --size 0": "32 pixels or more",
        "-o m.onnx --size 180\0x\0007": "HEIGHT or HEIGHTxWIDTH",
        "-o m.onnx --mode vq-dnn": NO_MEAN,
        "-o m.onnx --tau 4": NO_MEAN,
        "-o m.onnx --motion on": "add --stateful",
        "-o m.onnx --motion on --stateful --mode dnn": "which has no memory",
        "-o m.onnx --stateful --precision bf16": "run the graph file in it: steadyseg video",
        "-o m.onnx --stateful --precision int8": "run the checkpoint in it: steadyseg video",
        "-o m.onnx --stateful --precision fp16 --mode bnn --samples 2": "one pass a frame, got 2",
        "-o m.onnx --with-proof": "--with-proof is for one graph file with a state",
        "-o x --target web --with-proof": "--with-proof is for one graph file with a state",
        "-o m.pt": "is a .onnx file",
        "-o x": "is a .onnx file",
        "-o nowhere/m.onnx": "there is no folder nowhere",
        "--target web -o no/such/place": "does not exist",
        "--target web -o x --samples 5": "--samples 5",
        "--target web -o x --motion on": "--motion on",
        "--target web -o x --precision bf16": "--precision bf16",
        "--target web -o x --precision fp16": "a page runs fp32",
        "--target web -o imgs": "exists already",
        "--target web -o imgs --overwrite": "is not replaced",
    },
    "bench": {
        "no-such-model": "unknown model 'no-such-model'",
        "absent.onnx": "absent.onnx",
        "m --config row_seconds=no": "row_seconds must be a number, got 'no'",
    },
    "bench street-tiny": {
        "--only bare vq": "unknown row 'vq'; choose from bare_plain, bare, dnn",
        "--source absent.mp4": "no such video file",
        "--config row_seconds=0": "--config row_seconds must lie above 0",
        "--size 7": "height must be 32 pixels or more",
        "--backend onnxruntime": "ONNX Runtime runs graph files",
        "--backend openvino --device cuda": "runs on the CPU, got device cuda",
        "--report r.json": "r.json: exists already",
    },
}
"""By how a command line begins: its further words in the folder of `made_folder`, and what its one line says. \\0 is
a space within a word."""
CALLS = [(f"{command} {words}".strip(), said) for command, table in TABLES.items() for words, said in table.items()]


@pytest.fixture
def made_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a row."""
    monkeypatch.chdir(tmp_path)
    for folder in ("imgs", "labels", "own"):
        (tmp_path / folder).mkdir()
    for name in ("imgs/0", "imgs/0_uncertainty", "labels/0", "labels/0_uncertainty"):
        Image.fromarray(np.zeros((48, 64), np.uint8)).save(f"{name}.png")
    contents = {"text.mp4": b"just text", "zeros.mp4": b"\x00" * 4096, "weights.pt": b"\x80\x04.", "GRAPH.ONNX": b"1"}
    contents |= {"imgs/0.mp4": b"a video", "damaged.toml": b"paste = ", "deep.toml": b"a=" + b"[" * 10**5}
    contents |= {"nested.toml": b"a." * 5000 + b"b = 1", "list.json": b"[5]", "own/coco.json": b"{}"}
    for name, content in (contents | dict.fromkeys(("r.json", "r.png", "old.safetensors"), b"kept")).items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def assert_refused(folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_under(folder)
    assert said.lower() in one_line_error(capsys, *(word.replace("\0", " ") for word in words)).lower()
    assert files_under(folder) == before


@pytest.mark.parametrize(("words", "said"), CALLS)
def test_bad_input_is_one_line_and_changes_no_file(words, said, made_folder, capsys):
    assert_refused(made_folder, words.split(" "), said, capsys)
