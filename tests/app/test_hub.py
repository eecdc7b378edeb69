"""A checkpoint of the Hugging Face Hub, from the Hub's cache: nothing here reaches the network."""

from refusals import refusal

from steadyseg import HubModel
from steadyseg.runtime.open_model import open_checkpoint


def test_a_checkpoint_of_the_hub_opens_and_an_absent_one_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    kept, commit = tmp_path / "models--you--streets", "0" * 40
    for folder in ("refs", f"snapshots/{commit}"):
        (kept / folder).mkdir(parents=True)
    (kept / "refs" / "main").write_text(commit)
    open_checkpoint("street-tiny").save(kept / "snapshots" / commit / "model.safetensors")
    path = HubModel.from_pretrained("you/streets", cache_dir=tmp_path).path
    assert open_checkpoint(path).meta.architecture == "unet"
    for name in ("you/roads", "you/streets/and/roads"):
        assert name in refusal(HubModel.from_pretrained, name, cache_dir=tmp_path)
