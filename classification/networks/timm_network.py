"""Networks of the timm library as MC-dropout networks; CNNs may have spatial smoothing."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from steadyseg.classification.networks.layout import TIMM
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.dropout import Dropout, is_stochastic
from steadyseg.core.errors import InputError, first_line
from steadyseg.core.insertion import insert_dropout, insert_smoothing, require_timm_name, subsampling_points
from steadyseg.core.options import ProbName
from steadyseg.core.stages import Stage

DENSE_DROPOUTS = ("pos_drop", "proj_drop", "mlp_drop", "drop1", "drop2")
"""timm's names of the dropout modules after the position embedding and every dense layer but q, k and v.

The vision transformer has dropout there (arXiv 2010.11929, App. B.1)."""
ARGUMENTS = {"drop_path_rate": "stochastic_depth", "img_size": "img_size", "patch_size": "patch_size"}
"""timm's arguments and our options for them."""


class TimmNetwork(nn.Module):
    """(B, 3, h, w) -> (B, K) logits; h = w = `side` where the network was made for one size.

    A CNN has modules that halve a map. It gets smoothing before each of these modules but the stem, and MC dropout
    before the last two. A transformer gets MC dropout at `DENSE_DROPOUTS` and cannot be smoothed. In
    forward(x) == suffix(prefix(x)), the prefix is the whole network without dropout and does nothing with dropout.
    """

    def __init__(self, options: ClassifierOptions, num_classes: int) -> None:
        super().__init__()
        self.name = options.network
        self.model = _create(options, num_classes)
        fixed = self.model.default_cfg["input_size"][-1] if self.model.default_cfg.get("fixed_input_size") else None
        self.side = options.img_size or fixed
        example = _example(self.side)
        if options.img_size or options.patch_size:
            self._try(example)
        if options.smoothing or options.dropout > 0:
            _insert(self.model, options, example)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        if self.side is not None and (height, width) != (self.side, self.side):
            raise InputError(
                f"{self.name} was built for {self.side} x {self.side} pixels and got {height} x {width}; set img_size "
                "to the pictures' side if possible, or resize them"
            )
        try:
            return self.model(x)
        except AssertionError as error:  # timm's refusal of a size that is no multiple of its patches or windows
            raise InputError(f"{self.name} takes no pictures of {height} x {width} ({first_line(error)})") from error

    def prefix(self, x: Tensor) -> tuple[bool, Tensor]:
        """Returns (True, logits) without dropout, (False, the picture) with it."""
        return (False, x) if is_stochastic(self) else (True, self(x))

    def suffix(self, shared: tuple[bool, Tensor]) -> Tensor:
        done, x = shared
        return x if done else self(x)

    def named_stages(self) -> dict[str, Stage]:
        """Stages: the maps that timm lists as the network's features, by the names of their modules."""
        listed = getattr(self.model, "feature_info", [])
        modules = dict(self.model.named_modules())  # timm lists names that some networks do not have
        return {
            found["module"]: Stage(modules[found["module"]], partial(channels_first, found["num_chs"]))
            for found in (listed if isinstance(listed, list) else listed.get_dicts())
            if found.get("module") in modules
        }

    def _try(self, example: Tensor) -> None:
        """Raises InputError for a network that cannot compute its own input size, as with too large patches."""
        try:
            with torch.no_grad():
                self.eval()(example.to(next(self.parameters())))
        except RuntimeError as error:
            raise InputError(
                f"{self.name} of this img_size and patch_size takes no picture ({first_line(error)}); the side must "
                "be a multiple of the patch's and large enough for all stages"
            ) from error
        self.train()


def channels_first(channels: int, features: Any) -> Tensor:
    """Turns (B, C, h, w), (B, h, w, C) or tokens (B, N, C) into (B, C, h, w) or (B, C, N, 1); InputError for others."""
    if not isinstance(features, Tensor) or features.ndim not in (3, 4):
        raise InputError("a stage of this network gives no map and no tokens: familiarity cannot be fitted on it")
    if features.ndim == 3:
        return features.mT[..., None]
    return features if features.shape[1] == channels else features.permute(0, 3, 1, 2)


def _insert(model: Any, options: ClassifierOptions, example: Tensor) -> None:
    try:
        halving = subsampling_points(model, example)
    except InputError:
        halving = []
    if options.smoothing:
        if not halving:
            raise InputError(
                f"{options.network} has no module that halves a feature map, so nothing to smooth before; leave "
                "smoothing out"
            )
        # Maps without an activation need a Prob without ReLU; a ReLU would delete their negative half.
        linear: ProbName = options.prob if options.prob in ("constant", "none") else "signed-tanh"
        insert_smoothing(model, options.prob, linear, options.blur, "same", example)
    if options.dropout > 0:
        if halving:
            insert_dropout(model, options.dropout, example=example)
        elif not _replace_dropouts(model, options.dropout):
            raise InputError(
                f"{options.network} has no module that halves a feature map and none of the dropout modules of a "
                f"transformer ({', '.join(DENSE_DROPOUTS)}); leave dropout out"
            )


def _example(side: int | None) -> Tensor:
    """Returns a picture of the network's size; 128 where it takes any, enough to find the layers that halve the map."""
    side = side or 128
    return torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0))


def _replace_dropouts(model: nn.Module, rate: float) -> int:
    """Replaces the library's own dropout modules, whose rate is 0, by MC dropout; returns their number."""
    places = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent.named_children()
        if name in DENSE_DROPOUTS and isinstance(child, nn.Dropout)
    ]
    for parent, name in places:
        parent._modules[name] = Dropout(rate)
    return len(places)


def _create(options: ClassifierOptions, num_classes: int) -> Any:
    import timm

    name = options.network.removeprefix(TIMM)
    require_timm_name(name, TIMM)
    given = {argument: getattr(options, option) for argument, option in ARGUMENTS.items() if getattr(options, option)}
    try:
        return timm.create_model(name, pretrained=options.pretrained, num_classes=num_classes, **given)
    except OSError as error:  # every download error of the hub and of urllib
        raise InputError(
            f"the pretrained weights of {options.network} cannot be fetched ({first_line(error)}); go online or leave "
            "pretrained out"
        ) from error
    except (AssertionError, KeyError, RuntimeError, TypeError, ValueError, ZeroDivisionError) as error:
        for argument in given:
            if isinstance(error, TypeError) and f"'{argument}'" in str(error):
                raise InputError(f"{options.network} has no option {ARGUMENTS[argument]}; leave it out") from error
        raise InputError(
            f"timm makes no {options.network} of these options ({first_line(error)}); got {given}"
        ) from error
