"""A checkpoint on the Hugging Face Hub: `hf upload you/streets runs/seg/model.safetensors` puts it there."""

from typing import Any

from huggingface_hub import constants, hf_hub_download

from steadyseg.core.errors import InputError, first_line


class HubModel:
    """A file of the Hub: `open_segmenter(HubModel.from_pretrained("you/streets").path)`."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def from_pretrained(cls, repository: str, **options: Any) -> "HubModel":
        """Downloads model.safetensors, or finds it in the Hub's cache; `options`: see `hf_hub_download`."""
        try:
            return cls(hf_hub_download(repository, constants.SAFETENSORS_SINGLE_FILE, **options))
        except (OSError, ValueError) as error:  # the Hub's errors are one of the two
            raise InputError(f"{repository}: the Hugging Face Hub gives no checkpoint ({first_line(error)})") from error
