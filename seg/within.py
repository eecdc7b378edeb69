"""Teaching inside the sets of coarse labels: a network of the same classes says which class of {Building, Tree} it is.

A coarse label leaves the network free inside the set, and it then takes one class for all: trees become buildings. So a
teacher's most likely class of the set, and that class's share of the set's probability, are stored once a picture
beside the labels.
"""

from collections.abc import Callable, Iterable
from io import BytesIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from steadyseg.core.classes import ClassList
from steadyseg.core.errors import InputError
from steadyseg.core.evaluation.coarse import members
from steadyseg.core.method import MethodOptions
from steadyseg.core.picture_size import network_size
from steadyseg.core.preprocess import nearest, resize
from steadyseg.core.system.files import write_atomic
from steadyseg.core.system.machine import autocast, training_precision
from steadyseg.seg.data.coarse import is_coarse
from steadyseg.seg.data.label_folder import ImageFolderSplit
from steadyseg.seg.data.within import choice_file
from steadyseg.seg.of_model import streaming_module
from steadyseg.seg.pretrained import read_segmenter


class Teacher:
    """Callable (image (H, W, 3) uint8) -> (K, h, w) uint8: the network's probabilities times 255, with dropout off.

    h is H, and at least 32. The network sees the picture and its mirror image at the height of its own training: at 224
    pixels a network of 360 pixels would miss small things.
    """

    def __init__(self, model: str, classes: ClassList, device: torch.device) -> None:
        teacher = read_segmenter(model)
        if teacher.meta.classes.names != classes.names:
            raise InputError(f"{model} has other classes than the data; give a network of the same class list")
        self.module = streaming_module(teacher, MethodOptions(mode="dnn").resolve(teacher.meta)).to(device).eval()
        self.height, self.device, self.precision = teacher.meta.height, device, training_precision(device)

    def __call__(self, image: np.ndarray) -> Tensor:
        whole, (rows, columns) = torch.from_numpy(image).permute(2, 0, 1)[None], image.shape[:2]
        size, module = network_size(rows, columns, max(32, rows)), self.module
        with torch.inference_mode(), autocast(self.device.type, self.precision):
            picture = resize(whole, network_size(rows, columns, self.height))
            both = torch.cat([picture, picture.flip(-1)]).to(self.device).float()
            probs = module.predictor(module.normalize(both).to(memory_format=torch.channels_last)).probs
            mean = (probs[:1] + probs[1:].flip(-1)) / 2
            if mean.shape[-2:] != size:
                mean = F.interpolate(mean, size, mode="bilinear", antialias=True)
        return mean[0].mul(255).round_().to(torch.uint8).cpu()


def store_choices(
    split: ImageFolderSplit,
    teacher: str,
    device: torch.device,
    watch: Callable[[range], Iterable[int]] = lambda places: places,
) -> int:
    """Writes the choices of all pictures that have none yet; returns how many there were."""
    asked, written = Teacher(teacher, split.classes, device), 0
    choice_file(split, 0).parent.mkdir(exist_ok=True)
    for place in watch(range(len(split))):
        if (path := choice_file(split, place)).exists():
            continue
        image, label = split[place]
        if not is_coarse(label):
            raise InputError(f"{split.root}: its labels are single classes, so there is nothing to choose in them")
        encoded = BytesIO()
        Image.fromarray(choose_within(asked(image), label)).save(encoded, "PNG")
        write_atomic(path, encoded.getvalue(), durable=False)
        written += 1
    return written


def choose_within(probs: Tensor, label: np.ndarray) -> np.ndarray:
    """Returns (H, W, 2) uint8: the set's most likely class and 255 times its share of the set's probability.

    The share is 0 where the set has one class or none, or where the teacher gives the whole set no probability.

    Args:
        probs: (K, h, w) uint8, the teacher's probabilities times 255.
        label: (H, W) int32 sets.
    """
    height, width = label.shape
    full = nearest(probs, (height, width)).to(torch.int32)
    allowed = members(torch.from_numpy(label)[None], len(full))[0]
    inside = torch.where(allowed, full, torch.zeros_like(full))
    share = 255 * inside.amax(0) // inside.sum(0).clamp_min(1)
    share[allowed.sum(0) < 2] = 0
    return torch.stack([inside.argmax(0), share], -1).to(torch.uint8).numpy()
