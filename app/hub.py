"""Checkpoints on the Hugging Face Hub, as model.safetensors, config.json and a model card."""

from json import JSONDecodeError
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData, ModelHubMixin, constants, hf_hub_download

from steadyseg.app.open_model import is_classifier, open_checkpoint
from steadyseg.core.errors import InputError
from steadyseg.core.model.model import SUFFIX, Model

WEIGHTS, CONFIG = constants.SAFETENSORS_SINGLE_FILE, constants.CONFIG_NAME
USE = """## Use
```python
import steadyseg

model = steadyseg.{function}(steadyseg.HubModel.from_pretrained("{repository}").path)
```
"""


class HubModel(ModelHubMixin):
    """A checkpoint that goes to the Hugging Face Hub and comes from it, or from a folder laid out in the same way.

        HubModel("runs/seg/model.safetensors").push_to_hub("you/streets")
        segmenter = open_segmenter(HubModel.from_pretrained("you/streets").path)

    `from_pretrained`, `save_pretrained` and `push_to_hub` are inherited from `huggingface_hub.ModelHubMixin`. The
    weights file holds the whole record; config.json is a copy of it for readers.
    """

    def __init__(self, model: str | Path) -> None:
        """Reads a pretrained name or a .safetensors file; InputError for anything else."""
        self.model: Model = open_checkpoint(model)

    @property
    def path(self) -> str:
        """Path of the checkpoint's file, as `open_segmenter` and all commands take it."""
        return str(self.model.path)

    def generate_model_card(self, *args: Any, repo_id: str = "", **kwargs: Any) -> ModelCard:
        """Makes the card: the text beside the checkpoint, if any, and the lines of code that open the checkpoint."""
        meta, of_pictures = self.model.meta, is_classifier(self.model)
        data = ModelCardData(
            library_name="steadyseg",
            pipeline_tag="image-classification" if of_pictures else "image-segmentation",
            tags=["steadyseg", meta.architecture],
            license="other",
            license_name="see-card",
        )
        beside = self.model.path.with_suffix(".md")
        text = (
            beside.read_text() if beside.exists() else f"# {self.model.path.stem}\n\n{', '.join(meta.classes.names)}\n"
        )
        if meta.licence and not beside.exists():
            text += f"\n{meta.licence[0].upper()}{meta.licence[1:]}.\n"
        use = USE.format(
            function="open_classifier" if of_pictures else "open_segmenter", repository=repo_id or "you/repository"
        )
        return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n{use}")

    @classmethod
    def from_pretrained(cls, *arguments: Any, **options: Any) -> "HubModel":
        """Opens a folder or repository; InputError where its config.json is no JSON object."""
        try:
            return super().from_pretrained(*arguments, **options)
        except (AttributeError, TypeError, JSONDecodeError) as error:
            raise InputError(f"{arguments[0]}: its {CONFIG} is no JSON object ({error})") from error

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:
        """Writes weights, config.json and card into a folder. InputError for the model's own folder, whose files (such
        as a training's settings) have the same names."""
        if Path(save_directory).resolve() == self.model.path.resolve().parent:
            raise InputError(f"{save_directory}: holds the model itself; give another folder")
        return super().save_pretrained(save_directory, **options)

    def push_to_hub(self, repo_id: str, *, model_card_kwargs: dict[str, Any] | None = None, **options: Any) -> str:
        """Uploads what `save_pretrained` writes, with the repository's name in the card."""
        card = {"repo_id": repo_id} | (model_card_kwargs or {})
        return super().push_to_hub(repo_id, model_card_kwargs=card, **options)

    def _save_pretrained(self, save_directory: Path) -> None:
        self.model.save(save_directory / WEIGHTS)
        (save_directory / WEIGHTS).with_suffix(".json").replace(save_directory / CONFIG)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **options: Any) -> "HubModel":
        folder = Path(model_id)
        if not folder.is_dir():
            return cls(hf_hub_download(model_id, WEIGHTS, **options))
        if not (folder / WEIGHTS).is_file():
            raise InputError(
                f"{folder}: no {WEIGHTS} in this folder; `HubModel(CHECKPOINT{SUFFIX}).save_pretrained` writes it"
            )
        return cls(folder / WEIGHTS)
