"""`steady`: a segmenter of any torch network, which computes what the network and the product's own method compute."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from made.foreign import MEAN, QUERIES, STD, build
from refusals import refusal
from torch import Tensor, nn

from steadyseg import steady
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.insertion import insert_dropout
from steadyseg.core.method import MethodOptions
from steadyseg.core.model.thresholds import is_threshold_record
from steadyseg.core.predictors import first_tensor
from steadyseg.core.preprocess import Normalize
from steadyseg.core.segmenter import Segmenter
from steadyseg.runtime.kernels.resize import resize_frame
from steadyseg.seg.any_network import query_probabilities
from steadyseg.seg.pretrained import read_segmenter
from steadyseg.street.drive import Street

HEIGHT, WIDTH = 96, 128
GIVEN: dict[str, Any] = {"mean": MEAN, "std": STD, "size": (HEIGHT, WIDTH)}


def frames(seed: int = 3, count: int = 4) -> list[Any]:
    return list(Street(seed=seed, height=HEIGHT, width=WIDTH).frames(count))


def seen(frame: Any, mean: Any = MEAN, std: Any = STD) -> Tensor:
    """(1, 3, h, w), as the network takes a frame of its own size."""
    return Normalize(mean, std)(torch.from_numpy(frame.image).permute(2, 0, 1)[None])


def of_stills(network: Any, **given: Any) -> Segmenter:
    return steady(network, **GIVEN | given, options=MethodOptions(mode="dnn"), device="cpu", keep_probs=True)


def convolution(classes: int = 3, stride: int = 1) -> nn.Conv2d:
    torch.manual_seed(2)
    return nn.Conv2d(3, classes, 3, padding=1, stride=stride)


@pytest.mark.slow
def test_labelled_pictures_calibrate_a_network_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fit has all that a calibrated file has, and says that its pictures are few."""
    monkeypatch.setattr("steadyseg.app.evaluation.data.STREET_FRAMES", 20)
    model = read_segmenter("street-tiny")
    given = {"mean": model.meta.mean, "std": model.meta.std, "size": (HEIGHT, WIDTH), "classes": model.meta.classes}
    segmenter = steady(model.network(), **given, data="street", risk_class="Road", device="cpu")
    fit = segmenter.fit
    assert segmenter.method.calibrated and segmenter.method.temperature == fit["temperature"] != 1
    assert fit["conformal"]["coverage"] == 0.9 and fit["class_risk"]["class"] == "Road"
    assert is_threshold_record(fit["thresholds"]) and "20 pictures are few" in segmenter.why


FORMS: dict[str, Callable[[Tensor], Any]] = {
    "tensor": lambda logits: logits,
    "torchvision": lambda logits: {"out": logits, "aux": logits[:, :1]},
    "transformers": lambda logits: SimpleNamespace(logits=logits),
    "tuple": lambda logits: (logits, None),
    "coarse auxiliary and main": lambda logits: [9 * logits[..., ::2, ::2], logits],
    "main and edges": lambda logits: [logits, 9 * logits[:, :1]],
    "named auxiliary": lambda logits: {"head_aux": 9 * logits, "head": logits},
    "probabilities": lambda logits: torch.softmax(logits, 1),
    "channels last": lambda logits: logits.permute(0, 2, 3, 1),
    "half": lambda logits: logits.half(),
}
"""Logits in the forms of the libraries."""


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_output_gives_the_networks_probabilities(form: str) -> None:
    layer, frame = convolution(), frames(count=1)[0]
    segmenter = of_stills(lambda image: FORMS[form](layer(image)))
    maps = segmenter.step(frame)
    with torch.no_grad():
        probs = torch.softmax(layer(seen(frame)), 1)[0].numpy()
    assert maps.probs is not None and np.abs(maps.probs - probs).max() < (2e-3 if form == "half" else 5e-5)
    assert segmenter.classes.names == ("class 0", "class 1", "class 2")
    assert "disagreement" in segmenter.why and "no familiarity" in segmenter.why


def test_of_outputs_that_nothing_tells_apart_one_is_asked_for() -> None:
    layer = convolution()
    with pytest.raises(InputError, match=r"several outputs can be the logits \(0 .*, 1 .*a function that returns it"):
        of_stills(lambda image: [0.1 * layer(image), layer(image)])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["lraspp_mobilenet_v3_large", "Unet", "segformer", *QUERIES, "yolo26n-sem"])
def test_a_librarys_network_needs_no_argument_but_a_size(name: str) -> None:
    """Frames of another size are taken, and the probabilities are the library's own."""
    network, (frame,) = build(name), frames(count=1)
    segmenter = steady(network, size=(96, 96), options=MethodOptions(mode="dnn"), device="cpu", keep_probs=True)
    maps = segmenter.step(frame)
    as_it_is = name == "yolo26n-sem"
    mean, std = ((0.0,) * 3, (1.0,) * 3) if as_it_is else (MEAN, STD)
    assert f"mean {mean} and std {std} are " in segmenter.why
    named = {"y": ("0", "1"), **dict.fromkeys("Ul", ("class 0", "class 1"))}.get(name[0], ("a", "b"))
    assert segmenter.classes.names[:2] == named
    frame = replace(frame, image=resize_frame(frame.image, (96, 96))[0], label=None)
    with torch.no_grad():
        output = (network.model if as_it_is else network)(seen(frame, mean, std))
    probs = maps.probs
    assert probs is not None and np.abs(probs.sum(0) - 1).max() < 1e-4
    if name in QUERIES:
        processor = getattr(pytest.importorskip("transformers"), f"{QUERIES[name]}ImageProcessor")
        sized = SimpleNamespace(size={"shortest_edge": 48, "longest_edge": 48})
        labels = processor.post_process_semantic_segmentation(sized, output, target_sizes=[(48, 48)])[0]
        assert (probs.argmax(0) == labels.numpy()).mean() > (0.99 if name == "mask2former" else 0.999)  # at 384 pixels
    else:
        logits = first_tensor(output)
        if logits.shape[-1] < 96:
            logits = F.interpolate(logits, (48, 48), mode="bilinear", align_corners=False)
        assert np.abs(probs - torch.softmax(logits, 1)[0].numpy()).max() < 1e-4


def test_the_scores_of_queries_become_a_distribution_with_the_same_order() -> None:
    """Where no query claims a pixel all classes are alike; elsewhere the likeliest class is semantic inference's."""
    torch.manual_seed(0)
    kinds, masks = 3 * torch.randn(1, 7, 5), 3 * torch.randn(1, 7, 8, 9)
    masks[..., 0] = -50.0
    scores = torch.einsum("bqk,bqhw->bkhw", kinds.softmax(-1)[..., :-1], masks.sigmoid())
    probs = query_probabilities(kinds, masks)
    torch.testing.assert_close(probs.sum(1), torch.ones(1, 8, 9))
    torch.testing.assert_close(probs[..., 0], torch.full((1, 4, 8), 0.25))
    assert torch.equal(probs[..., 1:].argmax(1), scores[..., 1:].argmax(1)) and float(scores.sum(1).max()) > 1


def test_a_yolo_network_of_another_task_is_refused() -> None:
    yolo = pytest.importorskip("ultralytics", reason="YOLO26 needs ultralytics").YOLO("yolo26n-seg.yaml")
    assert "task segment, expected semantic" in refusal(steady, yolo)


@pytest.mark.parametrize("end", [torch.sigmoid, torch.nn.Identity()], ids=["probability", "logit"])
def test_one_channel_is_an_alpha_mask_of_two_classes(end: Any) -> None:
    layer, frame = convolution(1), frames(count=1)[0]
    maps = of_stills(lambda image: end(layer(image)), classes=["background", "person"]).step(frame)
    with torch.no_grad():
        alpha = torch.sigmoid(layer(seen(frame)))[0, 0].numpy()
    assert maps.probs is not None and np.abs(maps.probs[1] - alpha).max() < 5e-5


def test_coarse_logits_are_enlarged_to_half_the_size() -> None:
    layer, frame = convolution(stride=4), frames(count=1)[0]
    maps = of_stills(layer).step(frame)
    with torch.no_grad():
        logits = F.interpolate(layer(seen(frame)), (HEIGHT // 2, WIDTH // 2), mode="bilinear", align_corners=False)
    assert maps.probs is not None and np.abs(maps.probs - torch.softmax(logits, 1)[0].numpy()).max() < 5e-5


def test_the_name_of_a_class_list_is_one() -> None:
    assert steady(nn.Conv2d(3, len(CAMVID), 1), **GIVEN, classes="camvid").classes == CAMVID


def test_inserted_dropout_is_what_disagreement_needs() -> None:
    assert "no dropout" in refusal(steady, convolution(), **GIVEN, options=MethodOptions(mode="vq-bnn"))
    network = nn.Sequential(convolution(8), nn.Conv2d(8, 8, 3, padding=1), nn.MaxPool2d(2), nn.Conv2d(8, 3, 1))
    insert_dropout(network, 0.5, deepest=1)
    segmenter = steady(network, **GIVEN, options=MethodOptions(mode="bnn", samples=4), device="cpu")
    assert segmenter.step(frames(count=1)[0]).disagreement.any() and "no MC dropout" not in segmenter.why
    other, still = steady(network, **GIVEN, options=MethodOptions(mode="dnn"), device="cpu"), frames(count=1)[0]
    for _ in range(2):  # each has the dropout of its own mode
        assert segmenter.step(still).disagreement.any()
        assert (other.step(still).confidence == other.step(still).confidence).all()


NETWORKS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "labels": (lambda image: image.argmax(1), {}, "these are labels (an arg-max)"),
    "mask": (lambda image: (image[:, :1] > 0).float(), {}, "these are labels (an arg-max)"),
    "sigmoids": (torch.sigmoid, {}, "export the network without its last sigmoid"),
    "wrong classes": (convolution(), {"classes": ["a", "b"]}, "which is 3 classes, and 2 were named"),
    "no tensor": (lambda image: {"masks": [image]}, {}, "gives a dict with masks, expected a tensor of logits"),
    "not a picture": (lambda image: image.mean((2, 3)), {}, "expected logits (1, K, h, w) or (1, h, w, K)"),
    "another aspect": (lambda image: image[..., :50], {}, "no axis can be the class axis"),
    "not finite": (lambda image: image / 0, {}, "NaN or infinity"),
    "fails": (nn.Conv2d(4, 3, 1), {}, "Conv2d cannot run on a picture of 96x128"),
    "half": (convolution().half(), {}, "it must compute in float32: network.float()"),
    "levels of 255": (convolution(), {"mean": (123.7, 116.3, 103.5)}, "divide it by 255"),
    "random": (lambda image: F.dropout(image, 0.3), {}, "draws random numbers: two outputs for one picture differ"),
    "no sequence": (convolution(), {"mean": 0.5}, "mean is 0.5, expected three numbers"),
    "one number": (convolution(), {"std": (0.2,)}, "std is (0.2,), expected three numbers"),
    "nothing fitted": (convolution(), {"options": MethodOptions(calibrated=True)}, "need labelled data"),
    "two temperatures": (convolution(), {"temperature": 2.0, "data": "street"}, "data fits the temperature"),
    "fit unused": (convolution(), {"options": MethodOptions(calibrated=False), "data": "street"}, "so omit temp"),
    "size": (convolution(), {"size": (8, 8)}, "size is (8, 8), expected a height or (height, width)"),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_what_cannot_be_steadied_is_one_line(case: str) -> None:
    network, given, words = NETWORKS[case]
    assert words in refusal(steady, network, **GIVEN | given, device="cpu")
