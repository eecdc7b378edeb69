"""Checkpoints as the Hugging Face Hub keeps them, in a local folder: nothing here reaches the network."""

import json
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard

from steadyseg import Frame, HubModel, MethodOptions, open_segmenter
from steadyseg.app.open_model import open_checkpoint
from steadyseg.core.errors import InputError


def test_a_folder_for_the_hub_gives_the_same_maps(tmp_path: Path) -> None:
    HubModel("street-tiny").save_pretrained(tmp_path, model_card_kwargs={"repo_id": "you/streets"})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    loaded = HubModel.from_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architecture"] == loaded.model.meta.architecture
    image = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    maps = [
        open_segmenter(name, MethodOptions("dnn"), executor="torch").step(Frame(image, 0, 0.0)).entropy
        for name in ("street-tiny", loaded.path)
    ]
    assert np.array_equal(*maps)


@pytest.mark.parametrize(
    ("name", "pipeline", "function"),
    [
        ("camvid-mobile", "image-segmentation", "open_segmenter"),
        ("cifar10-resnet18-plain", "image-classification", "open_classifier"),
    ],
)
def test_the_card_says_what_the_hub_asks_for_and_how_to_open_it(
    name: str, pipeline: str, function: str, tmp_path: Path
) -> None:
    HubModel(name).save_pretrained(tmp_path, model_card_kwargs={"repo_id": "you/streets"})
    card = ModelCard.load(tmp_path / "README.md")
    assert (card.data.library_name, card.data.pipeline_tag) == ("steadyseg", pipeline)
    assert (
        f"# {name}" in card.text and f'{function}(steadyseg.HubModel.from_pretrained("you/streets").path)' in card.text
    )


def test_the_folder_of_the_model_is_refused_and_its_settings_stay(tmp_path: Path) -> None:
    model = open_checkpoint("street-tiny")
    model.save(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="holds the model itself"):
        HubModel(tmp_path / "model.safetensors").save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_text() == "{}"


def test_an_upload_has_its_address_in_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Hub itself is replaced: nothing is sent."""
    sent = []

    class Api:
        def __init__(self, **options: object) -> None:
            pass

        def create_repo(self, **options: object) -> object:
            return type("Repository", (), {"repo_id": "you/streets"})()

        def upload_folder(self, *, folder_path: Path, **options: object) -> str:
            sent.append((Path(folder_path) / "README.md").read_text())
            return "done"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Api)
    HubModel("street-tiny").push_to_hub("you/streets")
    assert len(sent) == 1 and 'HubModel.from_pretrained("you/streets")' in sent[0]


def test_a_folder_without_weights_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"no model\.safetensors in this folder"):
        HubModel.from_pretrained(tmp_path)


@pytest.mark.parametrize("text", ["[1]", "{", '"a"'])
def test_a_configuration_that_is_no_object_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"its config\.json is no JSON object"):
        HubModel.from_pretrained(tmp_path)
